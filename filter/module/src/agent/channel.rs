//! The one connection to the control plane, which carries both streams.

mod link;

use std::{error::Error, path::Path, time::Duration};

use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint, Uri},
};

use self::link::Link;
use super::AgentError;
use crate::settings::Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A channel that connects when first used and again after each loss.
pub(super) fn channel(settings: &Settings) -> Result<Channel, AgentError> {
    let authority = settings.control_plane_authority();
    let endpoint = Endpoint::from(uri("http", authority)?)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    let Some(tls) = settings.tls() else {
        return Ok(endpoint.connect_lazy());
    };
    let server_name = settings
        .server_name()
        .map_err(|error| AgentError::Address(error.to_string()))?;
    // tonic would keep the certificates that it has read once. It sees plain http, so that it does
    // not ask for its own TLS; the control plane is told what is true.
    Ok(endpoint
        .origin(uri("https", authority)?)
        .connect_with_connector_lazy(Link::new(tls, server_name)))
}

fn uri(scheme: &str, authority: &str) -> Result<Uri, AgentError> {
    let uri = format!("{scheme}://{authority}").parse();
    uri.map_err(|_| AgentError::Address(format!("{authority} is not host:port")))
}

/// Says who this node is, unless its certificate does.
pub(super) async fn authorize<T>(
    settings: &Settings,
    request: &mut Request<T>,
) -> Result<(), AgentError> {
    if let Some(file) = &settings.node_token_file {
        let token = authorization(file).await?;
        request.metadata_mut().insert("authorization", token);
    }
    Ok(())
}

/// `Bearer <token>`, read anew for each stream so that a rotated token is taken up.
async fn authorization(file: &Path) -> Result<MetadataValue<Ascii>, AgentError> {
    let token = tokio::fs::read_to_string(file)
        .await
        .map_err(|error| AgentError::Token {
            file: file.to_owned(),
            error,
        })?;
    let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.trim())
        .parse()
        .map_err(|_| AgentError::TokenForm(file.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// What lies at the bottom of an error of the transport, which alone says anything.
pub(super) fn cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    // In TLS 1.3 a node learns only after the handshake what becomes of its certificate; HTTP/2
    // passes the alert on as text.
    let alert = text.split_once("received fatal alert: ");
    match alert.and_then(|(_, alert)| link::refusal(alert)) {
        Some(refusal) => refusal,
        None => text,
    }
}

#[cfg(test)]
mod tests;
