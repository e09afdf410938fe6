#![allow(unsafe_code, missing_docs)]
use std::alloc::*; use std::cell::Cell;
#[path = "../examples/one_request/script.rs"]
mod script;
struct C; thread_local!{static ON:Cell<bool>=const{Cell::new(false)};}
unsafe impl GlobalAlloc for C { unsafe fn alloc(&self,l:Layout)->*mut u8{ if ON.replace(false){ eprintln!("ALLOC {} {}", l.size(), std::backtrace::Backtrace::force_capture()); ON.set(true);} unsafe{System.alloc(l)}} unsafe fn dealloc(&self,p:*mut u8,l:Layout){unsafe{System.dealloc(p,l)}} 
unsafe fn realloc(&self,p:*mut u8,l:Layout,n:usize)->*mut u8{ if ON.replace(false){ eprintln!("REALLOC {} {}", n, std::backtrace::Backtrace::force_capture()); ON.set(true);} unsafe{System.realloc(p,l,n)}}}
#[global_allocator] static A:C=C;
#[test] fn t(){ let mut s=script::Script::new(); s.plain_request(); ON.set(true); s.plain_request(); ON.set(false);}
