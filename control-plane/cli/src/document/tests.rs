use super::*;
use crate::resource::Capability;

fn source(text: &str) -> Source {
    Source {
        name: "gateway.yaml".into(),
        folder: PathBuf::from("conf"),
        text: text.into(),
    }
}

fn error(text: &str) -> String {
    format!("{:#}", source(text).documents().unwrap_err())
}

#[test]
fn documents_are_read_with_their_defaults() {
    let documents = source(
        "# a comment alone\n---\nkind: Team\nid: acme\nspec: {}\n---\n---\n\
         kind: Model\nid: org/fast\nspec:\n  targets: [{provider: openai}]\n  capabilities: [json-schema]\n",
    )
    .documents()
    .unwrap();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0].place, "gateway.yaml, document 1");
    assert_eq!(documents[1].place, "gateway.yaml, document 3");
    assert!(matches!(&documents[0].body, Body::Team(spec) if *spec == TeamSpec::default()));
    let Body::Model(model) = &documents[1].body else {
        panic!("a model");
    };
    assert_eq!(documents[1].id, "org/fast");
    assert_eq!(model.targets[0].provider, "openai");
    assert_eq!(model.capabilities, [Capability::JsonSchema]);
}

#[test]
fn a_text_without_a_resource_is_no_error_here() {
    for text in ["", "\n", "# only a comment\n\n", "---\n", "---\n---\n"] {
        assert_eq!(source(text).documents().unwrap().len(), 0, "{text:?}");
    }
}

#[test]
fn an_unknown_field_is_named_with_file_document_and_line() {
    let text = "kind: Team\nid: a\nspec: {}\n---\nkind: Team\nid: b\nspec:\n  displayname: B\n";
    assert_eq!(
        error(text),
        "gateway.yaml, document 2: spec: unknown field `displayname`, expected one of \
         `displayName`, `disabled`, `models` at line 8 column 3"
    );
    let nested = "kind: Model\nid: m\nspec:\n  targets:\n    - provider: p\n      modle: x\n";
    let nested = error(nested);
    assert!(
        nested.starts_with("gateway.yaml, document 1: spec.targets[0]: unknown field `modle`"),
        "{nested}"
    );
    let outer = error("kind: Team\nid: a\nspecs: {}\n");
    assert!(outer.contains("unknown field `specs`"), "{outer}");
}

#[test]
fn an_unknown_kind_is_refused_with_the_known_ones() {
    assert_eq!(
        error("kind: Route\nid: a\nspec: {}\n"),
        "gateway.yaml, document 1: unknown kind `Route`, expected one of Provider, Team, \
         VirtualKey, Credential, Model, RuleSet, PriceBook, Limit, Settings"
    );
    assert!(error("id: a\nspec: {}\n").contains("`kind` is missing"));
    assert!(error("just text\n").contains("a resource with `kind`, `id` and `spec`"));
}

#[test]
fn ids_belong_to_kinds_of_which_there_are_many() {
    assert!(error("kind: Team\nspec: {}\n").ends_with("document 1: `id` is missing"));
    assert!(error("kind: Team\nid: ''\nspec: {}\n").ends_with("`id` is empty"));
    assert!(error("kind: Settings\nid: x\nspec: {}\n").contains("`id` is set"));
    assert_eq!(
        source("kind: Settings\nspec: {}\n").documents().unwrap()[0].id,
        ""
    );
}

#[test]
fn a_required_field_and_a_wrong_type_are_named() {
    let missing = error("kind: VirtualKey\nid: k\nspec: {}\n");
    assert!(missing.contains("spec: missing field `team`"), "{missing}");
    let wrong = error("kind: Team\nid: t\nspec:\n  models: gpt-4o\n");
    assert!(wrong.contains("spec.models: invalid type"), "{wrong}");
    let word = error("kind: Model\nid: m\nspec:\n  targets: []\n  efforts: [extreme]\n");
    assert!(
        word.contains("spec.efforts[0]: unknown variant `extreme`"),
        "{word}"
    );
}

#[test]
fn prices_keep_the_digits_that_were_written() {
    let text = "kind: PriceBook\nspec:\n  prices:\n    - provider: p\n      upstreamModel: m\n      \
                effectiveFrom: 2026-12-01\n      input: 0.15\n      output: '9007199254740.993'\n";
    let documents = source(text).documents().unwrap();
    let Body::PriceBook(book) = &documents[0].body else {
        panic!("a price book");
    };
    let price = &book.prices[0];
    assert_eq!(price.input.map(|price| price.pusd_per_token), Some(150_000));
    assert_eq!(
        price.output.map(|price| price.pusd_per_token),
        Some(9_007_199_254_740_993_000)
    );
    assert_eq!(price.reasoning, None);
    let too_fine = error(&text.replace("0.15", "0.0000001"));
    assert!(
        too_fine.contains("spec.prices[0].input: `0.0000001` is finer"),
        "{too_fine}"
    );
    let exponent = error(&text.replace("0.15", "1e-3"));
    assert!(exponent.contains("`1e-3` is not a price"), "{exponent}");
}

#[test]
fn a_list_of_resources_is_read_item_by_item() {
    let text = r#"[{"kind":"Team","id":"a","spec":{"displayName":"A"},"status":{"configVersion":3}},
                   {"kind":"PriceBook","spec":{"prices":[{"provider":"p","upstreamModel":"m","input":9007199254740.993}]}}]"#;
    let documents = source(text).documents().unwrap();
    assert_eq!(documents[1].place, "gateway.yaml, document 1, item 2");
    let Body::PriceBook(book) = &documents[1].body else {
        panic!("a price book");
    };
    let input = book.prices[0].input.map(|price| price.pusd_per_token);
    assert_eq!(input, Some(9_007_199_254_740_993_000));
    let unknown =
        error(r#"[{"kind":"Team","id":"a","spec":{}},{"kind":"Tame","id":"b","spec":{}}]"#);
    assert!(
        unknown.contains("document 1: item 2: unknown kind `Tame`"),
        "{unknown}"
    );
}

#[test]
fn a_singleton_may_be_bare_or_a_document_of_its_kind() {
    let bare = "rules:\n  - {name: r, models: [m]}\n";
    let wrapped = "kind: RuleSet\nspec:\n  rules:\n    - {name: r, models: [m]}\nstatus: {}\n";
    let read = |text: &str| source(text).singleton::<RuleSetSpec>(Kind::RuleSet);
    assert_eq!(read(bare).unwrap(), read(wrapped).unwrap());
    let message = |text: &str| format!("{:#}", read(text).unwrap_err());
    assert_eq!(
        message("kind: PriceBook\nspec: {}\n"),
        "gateway.yaml: kind `PriceBook` is not `RuleSet`"
    );
    assert!(message("rule: []\n").starts_with("gateway.yaml: unknown field `rule`"));
    assert!(message(&format!("{bare}---\n{bare}")).contains("found several"));
    assert!(message("").contains("empty"));
}

#[test]
fn a_folder_is_read_by_file_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, id) in [
        ("b.yaml", "b"),
        ("a.yml", "a"),
        ("c.json", "c"),
        ("notes.txt", "x"),
    ] {
        let text = format!("{{\"kind\": \"Team\", \"id\": \"{id}\", \"spec\": {{}}}}");
        fs::write(folder.path().join(name), text).unwrap();
    }
    let sources = Source::read_all(folder.path()).unwrap();
    let ids: Vec<String> = sources
        .iter()
        .flat_map(|source| source.documents().unwrap())
        .map(|document| document.id)
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    let empty = tempfile::tempdir().unwrap();
    assert!(Source::read_all(empty.path()).is_err());
    assert!(Source::read_all(&folder.path().join("gone.yaml")).is_err());
}

#[test]
fn the_example_in_the_help_is_accepted() {
    let help = include_str!("../apply/help.txt");
    let example = help.split("Example:\n").nth(1).unwrap();
    let example = example.split("Examples:\n").next().unwrap();
    let documents = source(example).documents().unwrap();
    let kinds: Vec<Kind> = documents
        .iter()
        .map(|document| document.body.kind())
        .collect();
    assert_eq!(
        kinds,
        [
            Kind::Provider,
            Kind::Credential,
            Kind::Team,
            Kind::VirtualKey,
            Kind::Model,
            Kind::RuleSet,
            Kind::PriceBook,
            Kind::Limit
        ]
    );
}
