//! Functions have at most 70 lines, files at most 500 without their tests. The exceptions can
//! only shrink: one that is no longer needed, or larger than stated, fails.

use std::{collections::BTreeMap, path::Path};

use syn::{spanned::Spanned as _, visit::Visit};

use crate::sources;

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 500;

/// Files that are longer, with their length when they were listed.
const LONG_FILES: [(&str, usize); 0] = [];
/// Functions that are longer, as `file::function`, with their length when they were listed.
const LONG_FUNCTIONS: [(&str, usize); 8] = [
    (
        "control-plane/grpc/tests/services/admin/operations.rs::the_price_book_and_the_settings",
        78,
    ),
    (
        "control-plane/grpc/tests/services/admin/routing.rs::credentials_go_in_and_never_come_out",
        80,
    ),
    (
        "control-plane/grpc/tests/services/admin/routing.rs::models",
        89,
    ),
    (
        "control-plane/grpc/tests/services/admin/routing.rs::providers",
        91,
    ),
    (
        "control-plane/grpc/tests/services/admin/tenants.rs::teams",
        96,
    ),
    (
        "control-plane/grpc/tests/services/admin/tenants.rs::virtual_keys",
        104,
    ),
    (
        "control-plane/store/tests/store/ledger.rs::usage_is_summed_by_what_is_asked_for",
        87,
    ),
    (
        "control-plane/store/tests/store/publishing.rs::one_bad_row_written_past_the_api_does_not_freeze_the_rest",
        72,
    ),
];

#[derive(Default)]
struct Functions {
    long: Vec<(String, usize)>,
}

impl Functions {
    fn measure(&mut self, name: &syn::Ident, block: &syn::Block) {
        let span = block.span();
        let lines = span.end().line - span.start().line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.long.push((name.to_string(), lines));
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path
            .segments
            .last()
            .is_some_and(|last| last.ident == "test"),
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().contains("test")
        }
        syn::Meta::NameValue(_) => false,
    })
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            syn::visit::visit_item_mod(self, module);
        }
    }
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig.ident, &function.block);
        syn::visit::visit_item_fn(self, function);
    }
    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig.ident, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }
    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig.ident, block);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}

/// Lines up to the tests, which stand last in a file.
fn lines_without_tests(file: &syn::File, text: &str) -> usize {
    let tests = file.items.iter().find_map(|item| match item {
        syn::Item::Mod(module) if is_test(&module.attrs) => Some(module.span().start().line),
        _ => None,
    });
    tests.map_or_else(|| text.lines().count(), |line| line - 1)
}

fn is_test_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path
            .components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tidy")
            && !path.starts_with("tests/provider/src")
            && !path.starts_with("tests/src")
}

fn compare(kind: &str, measured: &BTreeMap<String, usize>, listed: &[(&str, usize)], max: usize) {
    let mut faults = Vec::new();
    for (name, lines) in measured {
        match listed.iter().find(|(listed, _)| listed == name) {
            Some((_, allowed)) if lines <= allowed => {}
            Some((_, allowed)) => faults.push(format!("{name} grew from {allowed} to {lines}")),
            None => faults.push(format!(
                "{name} has {lines} lines, at most {max} are allowed"
            )),
        }
    }
    for (name, _) in listed {
        if !measured.contains_key(*name) {
            faults.push(format!("{name} is short enough now: take it off the list"));
        }
    }
    assert!(
        faults.is_empty(),
        "{kind} sizes:\n  {}",
        faults.join("\n  ")
    );
}

#[test]
fn functions_and_files_are_short() {
    let mut long_files = BTreeMap::new();
    let mut long_functions = BTreeMap::new();
    for path in sources::files("rs") {
        let text = sources::read(&path);
        let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut functions = Functions::default();
        functions.visit_file(&file);
        for (name, lines) in functions.long {
            long_functions.insert(format!("{}::{name}", path.display()), lines);
        }
        let lines = lines_without_tests(&file, &text);
        if lines > FILE_LINES_MAX && !is_test_file(&path) {
            long_files.insert(path.display().to_string(), lines);
        }
    }
    compare(
        "function",
        &long_functions,
        &LONG_FUNCTIONS,
        FUNCTION_LINES_MAX,
    );
    compare("file", &long_files, &LONG_FILES, FILE_LINES_MAX);
}
