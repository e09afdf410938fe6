//! The allocation budget of the hot path: at most 12 a request, none per event of a stream.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[path = "../examples/one_request/script.rs"]
mod script;

use script::{STREAM_EVENT, Script};

const MAX_PER_REQUEST: u64 = 12;
const EVENTS: usize = 1000;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    COUNT.set(COUNT.get() + 1);
}

#[expect(unsafe_code, reason = "an allocator can't be counted from outside")]
// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    run();
    COUNT.get() - before
}

#[test]
fn a_plain_request_allocates_at_most_twelve_times() {
    let mut script = Script::new();
    script.plain_request(); // fills what a worker keeps
    let count = allocations(|| {
        script.plain_request();
    });
    let of_the_script = 1; // the length that it prints
    assert!(count - of_the_script <= MAX_PER_REQUEST, "{count}");
}

#[test]
fn limits_add_a_bounded_number_of_allocations() {
    let of = |limits| {
        let mut script = Script::with_limits(limits);
        script.plain_request();
        allocations(|| {
            script.plain_request();
        })
    };
    // What applies, what it needs, what is held, its units, the attempts' list and the charges:
    // one each, however many limits there are, but for lists that grow.
    let none = of(0);
    for (limits, more) in [(1, 6), (3, 6), (8, 8)] {
        let count = of(limits) - none;
        assert!(count <= more, "{limits} limits: {count}");
    }
}

#[test]
fn a_streamed_request_allocates_as_often_however_long_it_is() {
    let mut script = Script::new();
    for asks_usage in [true, false] {
        script.stream_request(asks_usage, 1);
        let mut of = |events| {
            allocations(|| {
                script.stream_request(asks_usage, events);
            })
        };
        let (short, long) = (of(1), of(EVENTS));
        assert_eq!(short, long);
        let of_the_script = 5; // three texts and two frames
        assert!(short - of_the_script <= MAX_PER_REQUEST, "{short}");
    }
}

#[test]
fn an_event_that_passes_untouched_allocates_nothing() {
    let mut script = Script::new();
    let mut exchange = script.open_stream(true);
    let mut out = Vec::new();
    let count = allocations(|| {
        for _ in 0..EVENTS {
            Script::stream_frame(&mut exchange, STREAM_EVENT, &mut out);
        }
    });
    assert_eq!(count, 0);
    script.end(exchange);
}

#[test]
fn an_event_that_may_be_stripped_allocates_nothing_but_the_callers_buffer() {
    let mut script = Script::new();
    let mut exchange = script.open_stream(false);
    let mut out = Vec::with_capacity(STREAM_EVENT.len());
    Script::stream_frame(&mut exchange, STREAM_EVENT, &mut out);
    let count = allocations(|| {
        for _ in 0..EVENTS {
            out.clear();
            Script::stream_frame(&mut exchange, STREAM_EVENT, &mut out);
            assert_eq!(out, STREAM_EVENT);
        }
    });
    assert_eq!(count, 0);
    script.end(exchange);
}
