//! The one connection to the control plane, which carries both streams.

use std::{path::Path, time::Duration};

use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use super::AgentError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// A channel that connects when first used and again after each loss.
pub(super) fn channel(control_plane: &str) -> Result<Channel, AgentError> {
    let endpoint = Endpoint::from_shared(control_plane.to_owned())
        .map_err(|error| AgentError::Address(error.to_string()))?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    Ok(endpoint.connect_lazy())
}

/// `Bearer <token>`, read anew for each stream so that a rotated token is taken up.
pub(super) async fn authorization(file: &Path) -> Result<MetadataValue<Ascii>, AgentError> {
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
