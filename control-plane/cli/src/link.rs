//! An open connection to the control plane: one gRPC client a service, each call with the token.

use std::fmt;
use std::time::Duration;

use anyhow::Context;
use proto::admin::v1::config_client::ConfigClient;
use proto::admin::v1::credentials_client::CredentialsClient;
use proto::admin::v1::limits_client::LimitsClient;
use proto::admin::v1::models_client::ModelsClient;
use proto::admin::v1::price_books_client::PriceBooksClient;
use proto::admin::v1::providers_client::ProvidersClient;
use proto::admin::v1::rule_sets_client::RuleSetsClient;
use proto::admin::v1::settings_service_client::SettingsServiceClient;
use proto::admin::v1::teams_client::TeamsClient;
use proto::admin::v1::usage_client::UsageClient;
use proto::admin::v1::virtual_keys_client::VirtualKeysClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::failure::CallError;
use crate::field::Words;
use crate::secret::Secret;

/// Longest wait for an answer, unless the call sets its own.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest answer: a page of a thousand records or a long price book.
const LARGEST_ANSWER_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct Link {
    channel: Channel,
    /// For errors, as `http://HOST:PORT`.
    address: String,
    stamp: Stamp,
    words: Words,
}

/// Puts the token and a deadline on each call.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    authorization: Option<MetadataValue<Ascii>>,
}

type Stamped = InterceptedService<Channel, Stamp>;

macro_rules! clients {
    ($($name:ident: $client:ident;)*) => {
        impl Link {
            $(
                pub(crate) fn $name(&self) -> $client<Stamped> {
                    $client::with_interceptor(self.channel.clone(), self.stamp.clone())
                        .max_decoding_message_size(LARGEST_ANSWER_BYTES)
                }
            )*
        }
    };
}

clients! {
    teams: TeamsClient;
    virtual_keys: VirtualKeysClient;
    providers: ProvidersClient;
    credentials: CredentialsClient;
    models: ModelsClient;
    rule_sets: RuleSetsClient;
    limits: LimitsClient;
    price_books: PriceBooksClient;
    settings: SettingsServiceClient;
    usage: UsageClient;
    config: ConfigClient;
}

// === impl Link ===

impl Link {
    pub(crate) fn new(
        channel: Channel,
        address: String,
        token: Option<&Secret>,
    ) -> anyhow::Result<Self> {
        let authorization = token.map(bearer).transpose()?;
        Ok(Self {
            channel,
            address,
            stamp: Stamp { authorization },
            words: Words::Flags,
        })
    }

    /// The same for a command that was given documents: its faults name members.
    pub(crate) fn of_documents(self) -> Self {
        let words = Words::Documents;
        Self { words, ..self }
    }

    /// Says what was being done and what may help, around an error of a call.
    pub(crate) fn explain(&self, doing: impl fmt::Display, error: CallError) -> anyhow::Error {
        if error.is_not_grpc() {
            let address = &self.address;
            return anyhow::anyhow!(
                "{doing}: what answers at {address} does not speak gRPC there: --admin-addr, or \
                 TURNPIKE_ADMIN_ADDR, must name the control plane's gRPC port (9090 by default), as \
                 https://HOST:PORT where it has a certificate"
            );
        }
        let hint = error.hint(self.stamp.authorization.is_some());
        let error = error.in_words(self.words);
        match hint {
            Some(hint) => anyhow::anyhow!("{doing}: {error} ({hint})"),
            None => anyhow::anyhow!("{doing}: {error}"),
        }
    }
}

fn bearer(token: &Secret) -> anyhow::Result<MetadataValue<Ascii>> {
    // The parse error is left out: it could show the token.
    let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.expose())
        .parse()
        .ok()
        .context("the admin token has characters that no header can carry")?;
    value.set_sensitive(true);
    Ok(value)
}

// === impl Stamp ===

impl Interceptor for Stamp {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(authorization) = &self.authorization {
            request
                .metadata_mut()
                .insert("authorization", authorization.clone());
        }
        if !request.metadata().contains_key("grpc-timeout") {
            request.set_timeout(CALL_TIMEOUT);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_fits_no_header_is_refused_without_showing_it() {
        let error = bearer(&Secret::new("admin-test\u{7}".into())).unwrap_err();
        assert!(!format!("{error:#}").contains("admin-test"));
        let value = bearer(&Secret::new("admin-test".into())).unwrap();
        assert!(!format!("{value:?}").contains("admin-test"));
    }
}
