//! The form in which an edited resource would be published.

use control_plane_core::fault::Fault;
use control_plane_core::published::{Body, Kind};
use prost::Message;
use sqlx::PgConnection;
use zeroize::Zeroizing;

use crate::config;
use crate::stored::to_unix_s;
use crate::{Error, Store};

impl Store {
    /// Reads an edited resource and turns it into what nodes are sent; none: it is not there.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Unreadable`] when it cannot be published as it stands.
    pub(super) async fn candidate(
        &self,
        tx: &mut PgConnection,
        kind: Kind,
        id: &str,
    ) -> Result<Option<Body>, Error> {
        match kind {
            Kind::Team => {
                let Some(team) = config::load_team(tx, id).await? else {
                    return Ok(None);
                };
                team.resource.validate().map_err(Error::Invalid)?;
                Ok(Some(encode(&team.resource.to_config())))
            }
            Kind::VirtualKey => {
                let Some(key) = config::load_virtual_key(tx, id).await? else {
                    return Ok(None);
                };
                let key = key.resource.key;
                key.validate().map_err(Error::Invalid)?;
                let secrets = config::load_secrets(tx, id).await?;
                Ok(Some(encode(&key.to_config(&secrets))))
            }
            Kind::Provider => self.provider_candidate(tx, id).await,
            Kind::Credential => self.credential_candidate(tx, id).await,
            Kind::Model => {
                let Some(model) = config::load_model(tx, id).await? else {
                    return Ok(None);
                };
                model.resource.validate().map_err(Error::Invalid)?;
                let created_at_s = to_unix_s(model.created_at);
                Ok(Some(encode(&model.resource.to_config(created_at_s))))
            }
            Kind::RuleSet => {
                let rule_set = config::load_rule_set(tx).await?.resource;
                rule_set.validate().map_err(Error::Invalid)?;
                let is_empty = rule_set.rules.is_empty();
                Ok((!is_empty).then(|| encode(&rule_set.to_config())))
            }
            Kind::PriceBook => {
                let book = config::load_price_book(tx).await?.resource;
                book.validate().map_err(Error::Invalid)?;
                Ok((book.version > 0).then(|| encode(&book.to_config())))
            }
            Kind::Limit => {
                let Some(limit) = config::load_limit(tx, id).await? else {
                    return Ok(None);
                };
                limit.resource.validate().map_err(Error::Invalid)?;
                Ok(Some(encode(&limit.resource.to_config())))
            }
            Kind::Settings => {
                let settings = config::load_settings(tx).await?.resource;
                Ok(Some(encode(&settings.to_config())))
            }
            Kind::Checkpoint => Ok(None),
        }
    }

    async fn provider_candidate(
        &self,
        tx: &mut PgConnection,
        id: &str,
    ) -> Result<Option<Body>, Error> {
        let Some(provider) = config::load_provider(tx, id).await? else {
            return Ok(None);
        };
        provider.resource.validate().map_err(Error::Invalid)?;
        let message = provider
            .resource
            .to_config(&self.clusters)
            .map_err(|fault| Error::Invalid(vec![fault]))?;
        Ok(Some(encode(&message)))
    }

    async fn credential_candidate(
        &self,
        tx: &mut PgConnection,
        id: &str,
    ) -> Result<Option<Body>, Error> {
        let Some((credential, envelope)) = config::load_credential(tx, id).await? else {
            return Ok(None);
        };
        let credential = credential.resource;
        credential.validate().map_err(Error::Invalid)?;
        let secret = self
            .secrets
            .plaintext(&credential, envelope.as_deref())
            .await
            .map_err(|(field, reason)| Error::Invalid(vec![Fault::new(field, reason)]))?;
        let mut message = credential.to_config(&secret);
        let body = encode(&message);
        // The message is dropped here; its copy of the secret is wiped first.
        drop(Zeroizing::new(std::mem::take(&mut message.secret)));
        Ok(Some(body))
    }
}

fn encode(message: &impl Message) -> Body {
    Body::new(Zeroizing::new(message.encode_to_vec()))
}
