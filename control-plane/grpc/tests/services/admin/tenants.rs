//! The admin API: teams and virtual keys.

use super::{mask, refused};
use crate::harness::{Database, replica};
use prost_types::Timestamp;
use proto::admin::v1::{
    CreateTeamRequest, CreateVirtualKeyRequest, DeleteTeamRequest, DeleteVirtualKeyRequest,
    GetTeamRequest, GetVirtualKeyRequest, ListTeamsRequest, ListVirtualKeysRequest, Team,
    UpdateTeamRequest, UpdateVirtualKeyRequest, VirtualKey,
};
use tonic::Code;

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
        update_mask: Some(mask()),
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
        update_mask: Some(mask()),
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
