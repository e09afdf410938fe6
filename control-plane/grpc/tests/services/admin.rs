//! The admin API: what each service does, and how it refuses.

use prost::Message as _;
use prost_types::{FieldMask, Timestamp};
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::{
    CreateCredentialRequest, CreateModelRequest, CreateProviderRequest, CreateTeamRequest,
    CreateVirtualKeyRequest, Credential, DeleteCredentialRequest, DeleteModelRequest,
    DeleteProviderRequest, DeleteTeamRequest, DeleteVirtualKeyRequest, GetCredentialRequest,
    GetModelRequest, GetPriceBookRequest, GetProviderRequest, GetRuleSetRequest,
    GetSettingsRequest, GetTeamRequest, GetVirtualKeyRequest, ListAuditEntriesRequest,
    ListCredentialsRequest, ListModelsRequest, ListNodesRequest, ListProvidersRequest,
    ListTeamsRequest, ListVirtualKeysRequest, Model, Plaintext, PriceBook, Provider,
    QueryUsageRequest, RuleSet, Settings, Team, UpdateCredentialRequest, UpdateModelRequest,
    UpdatePriceBookRequest, UpdateProviderRequest, UpdateRuleSetRequest, UpdateSettingsRequest,
    UpdateTeamRequest, UpdateVirtualKeyRequest, VirtualKey, credential,
};
use proto::config::v1 as config;
use proto::config::v1::{
    Capability, CredentialPlace, Dialect, Effort, OnUnknownUsage, Price, Rule,
    Settings as SettingsValues, Target,
};
use tonic::{Code, Response, Status};

use crate::harness::{Database, NODE_TOKEN, PROVIDER_SECRET, Replica, bearer, replica};
use crate::node::Node;

fn refused<T: std::fmt::Debug>(
    result: Result<Response<T>, Status>,
    code: Code,
    start: &str,
) -> String {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().starts_with(start), "{status:?}");
    status.message().to_owned()
}

fn mask() -> Option<FieldMask> {
    Some(FieldMask {
        paths: vec!["disabled".into()],
    })
}

#[tokio::test]
async fn teams() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut teams = replica.teams();
    let create = |team_id: &str| CreateTeamRequest {
        team_id: team_id.into(),
        team: Some(Team {
            display_name: "The blue ones".into(),
            models: vec!["acme/*".into()],
            ..Team::default()
        }),
    };
    let created = teams
        .create_team(create("blue"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(created.name, "teams/blue");
    assert!(created.config_version > 0 && created.create_time.is_some());
    let get = |name: &str| GetTeamRequest { name: name.into() };
    assert_eq!(
        teams
            .get_team(get("teams/blue"))
            .await
            .unwrap()
            .into_inner(),
        created
    );

    refused(
        teams.create_team(create("blue")).await,
        Code::AlreadyExists,
        "teams/blue",
    );
    refused(
        teams.create_team(create("Blue")).await,
        Code::InvalidArgument,
        "team_id: ",
    );
    refused(
        teams.get_team(get("teams/red")).await,
        Code::NotFound,
        "teams/red",
    );
    refused(
        teams.get_team(get("blue")).await,
        Code::InvalidArgument,
        "name: ",
    );

    let mut update = UpdateTeamRequest {
        team: Some(Team {
            disabled: true,
            ..created.clone()
        }),
        update_mask: mask(),
    };
    refused(
        teams.update_team(update.clone()).await,
        Code::InvalidArgument,
        "update_mask: ",
    );
    update.update_mask = None;
    let updated = teams.update_team(update).await.unwrap().into_inner();
    assert!(updated.disabled && updated.config_version > created.config_version);
    refused(
        teams.update_team(UpdateTeamRequest::default()).await,
        Code::InvalidArgument,
        "team: ",
    );

    replica.create_key("app", "blue").await;
    let delete = || DeleteTeamRequest {
        name: "teams/blue".into(),
    };
    refused(
        teams.delete_team(delete()).await,
        Code::FailedPrecondition,
        "teams/blue",
    );
    let request = DeleteVirtualKeyRequest {
        name: "virtualKeys/app".into(),
    };
    replica
        .virtual_keys()
        .delete_virtual_key(request)
        .await
        .unwrap();
    let deleted = teams.delete_team(delete()).await.unwrap().into_inner();
    assert!(deleted.config_version > updated.config_version);
    refused(
        teams.delete_team(delete()).await,
        Code::NotFound,
        "teams/blue",
    );
}

#[tokio::test]
async fn lists_come_in_pages() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    for at in 0..5 {
        replica.create_team(&format!("team-{at}")).await;
    }
    let mut names = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListTeamsRequest {
            page_size: 2,
            page_token,
        };
        let page = replica
            .teams()
            .list_teams(request)
            .await
            .unwrap()
            .into_inner();
        assert!(page.teams.len() <= 2);
        names.extend(page.teams.into_iter().map(|team| team.name));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (0..5).map(|at| format!("teams/team-{at}")).collect();
    assert_eq!(names, expected);
    for (page_size, page_token) in [(-1, ""), (2, "nonsense")] {
        let request = ListTeamsRequest {
            page_size,
            page_token: page_token.into(),
        };
        refused(
            replica.teams().list_teams(request).await,
            Code::InvalidArgument,
            "page_",
        );
    }
}

#[tokio::test]
async fn virtual_keys() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_team("blue").await;
    let mut keys = replica.virtual_keys();
    let create = |id: &str, team: &str, import: &str| CreateVirtualKeyRequest {
        virtual_key_id: id.into(),
        virtual_key: Some(VirtualKey {
            team: team.into(),
            expire_time: Some(Timestamp {
                seconds: 4_000_000_000,
                nanos: 0,
            }),
            ..VirtualKey::default()
        }),
        import_secret: import.into(),
    };
    let made = keys.create_virtual_key(create("", "teams/blue", "")).await;
    let made = made.unwrap().into_inner();
    let key = made.virtual_key.unwrap();
    assert!(made.secret.starts_with("tp_") && made.secret.starts_with(&key.secret_hint));
    assert_eq!(key.team, "teams/blue");
    assert_eq!(key.expire_time.unwrap().seconds, 4_000_000_000);

    let imported = "sk-test-imported-0123456789";
    let taken = keys
        .create_virtual_key(create("old", "teams/blue", imported))
        .await;
    let taken = taken.unwrap().into_inner();
    assert_eq!(taken.secret, "");
    let again = keys
        .create_virtual_key(create("old-2", "teams/blue", imported))
        .await;
    let message = refused(again, Code::InvalidArgument, "import_secret: ");
    assert!(!message.contains(imported));
    let short = keys
        .create_virtual_key(create("x", "teams/blue", "short"))
        .await;
    refused(short, Code::InvalidArgument, "import_secret: ");
    let nobody = keys.create_virtual_key(create("x", "teams/red", "")).await;
    refused(nobody, Code::InvalidArgument, "team: ");
    let bare = keys.create_virtual_key(create("x", "blue", "")).await;
    refused(bare, Code::InvalidArgument, "team: ");

    let get = GetVirtualKeyRequest {
        name: key.name.clone(),
    };
    let got = keys.get_virtual_key(get).await.unwrap().into_inner();
    assert_eq!(got, key);
    assert!(!format!("{got:?}").contains(&made.secret));
    let list = ListVirtualKeysRequest {
        team: "teams/blue".into(),
        ..Default::default()
    };
    let listed = keys.list_virtual_keys(list).await.unwrap().into_inner();
    assert_eq!(listed.virtual_keys.len(), 2);
    let list = ListVirtualKeysRequest {
        team: "blue".into(),
        ..Default::default()
    };
    refused(
        keys.list_virtual_keys(list).await,
        Code::InvalidArgument,
        "team: ",
    );

    let update = UpdateVirtualKeyRequest {
        virtual_key: Some(VirtualKey {
            display_name: "renamed".into(),
            expire_time: None,
            ..key.clone()
        }),
        update_mask: None,
    };
    let updated = keys
        .update_virtual_key(update.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (updated.display_name.as_str(), updated.expire_time),
        ("renamed", None)
    );
    assert_eq!(updated.secret_hint, key.secret_hint);
    let masked = UpdateVirtualKeyRequest {
        update_mask: mask(),
        ..update
    };
    refused(
        keys.update_virtual_key(masked).await,
        Code::InvalidArgument,
        "update_mask: ",
    );

    let delete = DeleteVirtualKeyRequest {
        name: key.name.clone(),
    };
    keys.delete_virtual_key(delete.clone()).await.unwrap();
    refused(
        keys.delete_virtual_key(delete).await,
        Code::NotFound,
        &key.name,
    );
}

#[tokio::test]
async fn providers() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let mut providers = replica.providers();
    let create = |base_url: &str| CreateProviderRequest {
        provider_id: "acme".into(),
        provider: Some(Provider {
            dialect: Dialect::Openai.into(),
            base_url: base_url.into(),
            ..Provider::default()
        }),
    };
    for url in [
        "",
        "acme.example",
        "https://u:p@acme.example",
        "https://acme.example?key=CANARY",
    ] {
        let refusal = providers.create_provider(create(url)).await;
        let message = refused(refusal, Code::InvalidArgument, "base_url: ");
        assert!(!message.contains("CANARY"));
    }
    let mut no_dialect = create("https://acme.example/v1");
    no_dialect.provider.as_mut().unwrap().dialect = 0;
    refused(
        providers.create_provider(no_dialect).await,
        Code::InvalidArgument,
        "dialect: ",
    );
    let mut bad_ca = create("https://acme.example/v1");
    bad_ca.provider.as_mut().unwrap().ca_pem =
        "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----".into();
    refused(
        providers.create_provider(bad_ca).await,
        Code::InvalidArgument,
        "ca_pem: ",
    );

    let created = providers
        .create_provider(create("https://acme.example/v1"))
        .await;
    let created = created.unwrap().into_inner();
    assert_eq!(created.credential_place(), CredentialPlace::Bearer);
    let got = providers
        .get_provider(GetProviderRequest {
            name: created.name.clone(),
        })
        .await;
    assert_eq!(got.unwrap().into_inner(), created);
    let listed = providers
        .list_providers(ListProvidersRequest::default())
        .await;
    assert_eq!(listed.unwrap().into_inner().providers, [created.clone()]);

    let update = UpdateProviderRequest {
        provider: Some(Provider {
            no_stream_usage_option: true,
            ..created.clone()
        }),
        update_mask: None,
    };
    let updated = providers
        .update_provider(update)
        .await
        .unwrap()
        .into_inner();
    assert!(updated.no_stream_usage_option);

    replica.create_model("large", "acme").await;
    let delete = || DeleteProviderRequest {
        name: "providers/acme".into(),
    };
    refused(
        providers.delete_provider(delete()).await,
        Code::FailedPrecondition,
        "providers/acme",
    );
    let model = DeleteModelRequest {
        name: "models/large".into(),
    };
    replica.models().delete_model(model).await.unwrap();
    providers.delete_provider(delete()).await.unwrap();
    refused(
        providers.delete_provider(delete()).await,
        Code::NotFound,
        "providers/acme",
    );
}

fn credential(source: Option<credential::Source>) -> CreateCredentialRequest {
    CreateCredentialRequest {
        credential_id: "main".into(),
        credential: Some(Credential {
            provider: "providers/acme".into(),
            source,
            ..Credential::default()
        }),
    }
}

fn plaintext(value: &str) -> Option<credential::Source> {
    Some(credential::Source::Secret(Plaintext {
        value: value.into(),
    }))
}

#[tokio::test]
async fn credentials_go_in_and_never_come_out() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut credentials = replica.credentials();
    for (source, field) in [
        (None, "source: "),
        (plaintext("two words"), "secret: "),
        (Some(credential::Source::File("../x".into())), "file: "),
        (
            Some(credential::Source::EnvironmentVariable("HOME".into())),
            "environment_variable: ",
        ),
    ] {
        let refusal = credentials.create_credential(credential(source)).await;
        let message = refused(refusal, Code::InvalidArgument, field);
        assert!(!message.contains("two words"));
    }
    let created = credentials
        .create_credential(credential(plaintext(PROVIDER_SECRET)))
        .await;
    let created = created.unwrap().into_inner();
    assert_eq!((created.weight, created.source.clone()), (1, None));

    // The secret stays when none is given.
    let update = UpdateCredentialRequest {
        credential: Some(Credential {
            weight: 7,
            ..created.clone()
        }),
        update_mask: None,
    };
    let updated = credentials
        .update_credential(update.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(updated.weight, 7);
    let masked = UpdateCredentialRequest {
        update_mask: mask(),
        ..update
    };
    refused(
        credentials.update_credential(masked).await,
        Code::InvalidArgument,
        "update_mask: ",
    );

    let got = credentials.get_credential(GetCredentialRequest {
        name: created.name.clone(),
    });
    let got = got.await.unwrap().into_inner();
    let list = ListCredentialsRequest {
        provider: "providers/acme".into(),
        ..Default::default()
    };
    let listed = credentials
        .list_credentials(list)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.credentials, [got.clone()]);
    let audit = replica
        .config()
        .list_audit_entries(ListAuditEntriesRequest::default())
        .await;
    let audit = audit.unwrap().into_inner();
    let everything = format!("{created:?} {updated:?} {got:?} {audit:?}");
    assert!(!everything.contains("sk-test"), "{everything}");

    let delete = DeleteCredentialRequest {
        name: created.name.clone(),
    };
    credentials.delete_credential(delete.clone()).await.unwrap();
    refused(
        credentials.delete_credential(delete).await,
        Code::NotFound,
        "credentials/main",
    );
}

#[tokio::test]
async fn a_reference_that_leads_nowhere_is_refused_and_later_told() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut credentials = replica.credentials();
    let variable = |name: &str| Some(credential::Source::EnvironmentVariable(name.into()));
    let unset = credential(variable("TURNPIKE_SECRET_UNSET"));
    let refusal = credentials.create_credential(unset).await;
    refused(refusal, Code::InvalidArgument, "environment_variable: ");
    let file = || Some(credential::Source::File("acme.key".into()));
    let refusal = credentials.create_credential(credential(file())).await;
    refused(refusal, Code::InvalidArgument, "file: ");

    let path = database.secrets.path().join("acme.key");
    std::fs::write(&path, format!("{PROVIDER_SECRET}\n")).unwrap();
    let created = credentials.create_credential(credential(file())).await;
    let created = created.unwrap().into_inner();
    assert_eq!(created.source, file());
    let mut node = Node::connect(&replica.channel, "gw-1", None).await;
    node.reach(created.config_version).await;
    let held = config::Credential::decode(node.holds["Credential/main"].as_slice()).unwrap();
    assert_eq!(held.secret, PROVIDER_SECRET);

    // The file is gone when the next replica starts: it says so, and nodes keep what they have.
    std::fs::remove_file(&path).unwrap();
    let next = crate::harness::replica(&database, true).await;
    let nodes = next
        .config()
        .list_nodes(ListNodesRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(nodes.unpublished.len(), 1, "{nodes:?}");
    assert!(
        nodes.unpublished[0].starts_with("credential main: "),
        "{nodes:?}"
    );
    let mut node = Node::connect(&next.channel, "gw-2", None).await;
    let push = node.push().await;
    assert!(push.changed().contains(&"Credential/main".to_owned()));
}

#[tokio::test]
async fn without_a_master_key_no_credential_is_taken() {
    let database = Database::create().await;
    let replica = replica(&database, false).await;
    replica.create_provider("acme").await;
    let mut credentials = replica.credentials();
    let refusal = credentials
        .create_credential(credential(plaintext(PROVIDER_SECRET)))
        .await;
    let message = refused(
        refusal,
        Code::FailedPrecondition,
        "this control plane runs without",
    );
    assert!(!message.contains("sk-test"));
    let listed = credentials
        .list_credentials(ListCredentialsRequest::default())
        .await;
    assert!(listed.unwrap().into_inner().credentials.is_empty());
}

#[tokio::test]
async fn models() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut models = replica.models();
    let create = |id: &str, provider: &str| CreateModelRequest {
        model_id: id.into(),
        model: Some(Model {
            targets: vec![Target {
                provider: provider.into(),
                ..Target::default()
            }],
            capabilities: vec![Capability::Tools.into()],
            efforts: vec![Effort::High.into()],
            context_window: 128_000,
            ..Model::default()
        }),
    };
    let created = models
        .create_model(create("acme/large", "acme"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(created.name, "models/acme/large");
    refused(
        models.create_model(create("auto", "acme")).await,
        Code::InvalidArgument,
        "model_id: ",
    );
    refused(
        models.create_model(create("m", "nobody")).await,
        Code::InvalidArgument,
        "targets",
    );
    let mut unknown = create("m", "acme");
    unknown.model.as_mut().unwrap().capabilities = vec![0, 99];
    let message = refused(
        models.create_model(unknown).await,
        Code::InvalidArgument,
        "capabilities[0]: ",
    );
    assert!(message.contains("capabilities[1]: "));

    let get = GetModelRequest {
        name: created.name.clone(),
    };
    assert_eq!(models.get_model(get).await.unwrap().into_inner(), created);
    let listed = models
        .list_models(ListModelsRequest::default())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(listed.models, [created.clone()]);
    let update = UpdateModelRequest {
        model: Some(Model {
            disabled: true,
            ..created.clone()
        }),
        update_mask: None,
    };
    assert!(
        models
            .update_model(update)
            .await
            .unwrap()
            .into_inner()
            .disabled
    );

    let enabled = UpdateModelRequest {
        model: Some(created.clone()),
        update_mask: None,
    };
    models.update_model(enabled).await.unwrap();
    replica.route_all_to("acme/large").await;
    let delete = || DeleteModelRequest {
        name: "models/acme/large".into(),
    };
    refused(
        models.delete_model(delete()).await,
        Code::FailedPrecondition,
        "models/acme/large",
    );
    let no_rules = UpdateRuleSetRequest {
        rule_set: Some(RuleSet::default()),
    };
    replica.rule_sets().update_rule_set(no_rules).await.unwrap();
    models.delete_model(delete()).await.unwrap();
}

#[tokio::test]
async fn a_rule_set_is_refused_whole_with_every_fault() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    replica.create_model("large", "acme").await;
    let mut rule_sets = replica.rule_sets();
    let rule = |name: &str, models: &[&str]| Rule {
        name: name.into(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        ..Rule::default()
    };
    let update = |rules: Vec<Rule>| UpdateRuleSetRequest {
        rule_set: Some(RuleSet {
            rules,
            ..RuleSet::default()
        }),
    };
    let stored = rule_sets
        .update_rule_set(update(vec![rule("default", &["large"])]))
        .await;
    let stored = stored.unwrap().into_inner();
    assert_eq!((stored.name.as_str(), stored.rules.len()), ("ruleSet", 1));

    let wrong = vec![rule("a", &["large"]), rule("a", &[])];
    let refusal = rule_sets.update_rule_set(update(wrong)).await;
    let message = refused(refusal, Code::InvalidArgument, "rules[1].name: ");
    assert!(message.contains("rules[1].models: "), "{message}");
    let unknown = vec![rule("a", &["large"]), rule("b", &["large", "nothing"])];
    let refusal = rule_sets.update_rule_set(update(unknown)).await;
    let message = refused(refusal, Code::InvalidArgument, "");
    assert!(message.contains("rules[1].models[1]"), "{message}");

    let got = rule_sets
        .get_rule_set(GetRuleSetRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(got, stored);
}

#[tokio::test]
async fn the_price_book_and_the_settings() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut books = replica.price_books();
    let empty = books
        .get_price_book(GetPriceBookRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!((empty.name.as_str(), empty.version), ("priceBook", 0));
    let price = Price {
        provider: "acme".into(),
        upstream_model: "upstream-1".into(),
        input_pusd: Some(1_000_000),
        ..Price::default()
    };
    let update = |prices: Vec<Price>| UpdatePriceBookRequest {
        price_book: Some(PriceBook {
            prices,
            ..PriceBook::default()
        }),
    };
    let book = books
        .update_price_book(update(vec![price.clone()]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (book.version, book.prices.as_slice()),
        (1, [price.clone()].as_slice())
    );
    let book = books
        .update_price_book(update(vec![price.clone()]))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(book.version, 2);
    let twice = books
        .update_price_book(update(vec![price.clone(), price]))
        .await;
    refused(twice, Code::InvalidArgument, "prices[1]");

    let mut settings = replica.settings();
    let values = SettingsValues {
        max_stale_s: 60,
        on_unknown_usage: OnUnknownUsage::Void.into(),
        ..SettingsValues::default()
    };
    let update = UpdateSettingsRequest {
        settings: Some(Settings {
            values: Some(values),
            ..Settings::default()
        }),
    };
    let updated = settings.update_settings(update).await.unwrap().into_inner();
    assert_eq!(updated.values, Some(values));
    let got = settings
        .get_settings(GetSettingsRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(got, updated);
    let wrong = UpdateSettingsRequest {
        settings: Some(Settings {
            values: Some(SettingsValues {
                on_unknown_usage: 9,
                ..SettingsValues::default()
            }),
            ..Settings::default()
        }),
    };
    refused(
        settings.update_settings(wrong).await,
        Code::InvalidArgument,
        "values.on_unknown_usage: ",
    );
}

#[tokio::test]
async fn usage_questions_that_make_no_sense_are_refused() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    let ask = |request: QueryUsageRequest| {
        let mut usage = replica.usage();
        async move { usage.query_usage(request).await }
    };
    let group_by = |dimensions: &[i32]| QueryUsageRequest {
        group_by: dimensions.to_vec(),
        ..QueryUsageRequest::default()
    };
    refused(
        ask(group_by(&[1, 0])).await,
        Code::InvalidArgument,
        "group_by[1]: ",
    );
    refused(
        ask(group_by(&[5, 6])).await,
        Code::InvalidArgument,
        "group_by: ",
    );
    let nanos = QueryUsageRequest {
        start_time: Some(Timestamp {
            seconds: 0,
            nanos: -1,
        }),
        ..QueryUsageRequest::default()
    };
    refused(ask(nanos).await, Code::InvalidArgument, "start_time: ");
    let bare = QueryUsageRequest {
        team: "blue".into(),
        ..QueryUsageRequest::default()
    };
    refused(ask(bare).await, Code::InvalidArgument, "team: ");
    assert!(ask(QueryUsageRequest::default()).await.is_ok());
}

#[tokio::test]
async fn every_change_leaves_an_audit_entry() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.seed().await;
    let list = |page_size, page_token| ListAuditEntriesRequest {
        page_size,
        page_token,
    };
    let page = replica
        .config()
        .list_audit_entries(list(4, String::new()))
        .await;
    let page = page.unwrap().into_inner();
    let methods: Vec<&str> = page
        .entries
        .iter()
        .map(|entry| entry.method.as_str())
        .collect();
    assert_eq!(
        methods,
        [
            "UpdateRuleSet",
            "CreateModel",
            "CreateCredential",
            "CreateProvider"
        ]
    );
    assert_eq!(page.entries[1].resource, "models/large");
    assert_eq!(page.entries[1].actor, "admin-token");
    assert!(page.entries[1].state.contains("upstream-1"));
    let page = replica
        .config()
        .list_audit_entries(list(4, page.next_page_token))
        .await;
    let page = page.unwrap().into_inner();
    let methods: Vec<&str> = page
        .entries
        .iter()
        .map(|entry| entry.method.as_str())
        .collect();
    // The deployment's first version is the control plane's own doing.
    assert_eq!(
        methods,
        ["CreateVirtualKey", "CreateTeam", "PublishPending"]
    );
    assert_eq!(page.next_page_token, "");
}

#[tokio::test]
async fn only_the_admin_token_opens_the_admin_api() {
    let database = Database::create().await;
    let replica: Replica = replica(&database, true).await;
    for token in ["wrong-token-0123456789", NODE_TOKEN] {
        let mut teams = TeamsClient::with_interceptor(replica.channel.clone(), bearer(token));
        let refusal = teams.list_teams(ListTeamsRequest::default()).await;
        refused(refusal, Code::Unauthenticated, "");
    }
    let mut nobody = TeamsClient::new(replica.channel.clone());
    let refusal = nobody.list_teams(ListTeamsRequest::default()).await;
    refused(refusal, Code::Unauthenticated, "");
}
