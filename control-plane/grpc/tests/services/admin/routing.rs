//! The admin API: providers, credentials, models, rules.

use super::{mask, refused};
use crate::harness::{Database, PROVIDER_SECRET, replica};
use crate::node::Node;
use prost::Message as _;
use proto::admin::v1::{
    CreateCredentialRequest, CreateModelRequest, CreateProviderRequest, Credential,
    DeleteCredentialRequest, DeleteModelRequest, DeleteProviderRequest, GetCredentialRequest,
    GetModelRequest, GetProviderRequest, GetRuleSetRequest, ListAuditEntriesRequest,
    ListCredentialsRequest, ListModelsRequest, ListNodesRequest, ListProvidersRequest, Model,
    Plaintext, Provider, RuleSet, UpdateCredentialRequest, UpdateModelRequest,
    UpdateProviderRequest, UpdateRuleSetRequest, credential,
};
use proto::config::v1 as config;
use proto::config::v1::{Capability, CredentialPlace, Dialect, Effort, Rule, Target};
use tonic::Code;

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
    assert_eq!(
        listed.unwrap().into_inner().providers,
        std::slice::from_ref(&created)
    );

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

fn plaintext(value: &str) -> credential::Source {
    credential::Source::Secret(Plaintext {
        value: value.into(),
    })
}

#[tokio::test]
async fn credentials_go_in_and_never_come_out() {
    let database = Database::create().await;
    let replica = replica(&database, true).await;
    replica.create_provider("acme").await;
    let mut credentials = replica.credentials();
    for (source, field) in [
        (None, "source: "),
        (Some(plaintext("two words")), "secret: "),
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
        .create_credential(credential(Some(plaintext(PROVIDER_SECRET))))
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
        update_mask: Some(mask()),
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
    assert_eq!(listed.credentials, std::slice::from_ref(&got));
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
        .create_credential(credential(Some(plaintext(PROVIDER_SECRET))))
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
    assert_eq!(listed.models, std::slice::from_ref(&created));
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
