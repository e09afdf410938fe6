//! `Debug` of the messages that carry a secret: everything but the secret.

use std::fmt;

use crate::{admin, config};

const REDACTED: &str = "<redacted>";

impl fmt::Debug for config::v1::Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("id", &self.id)
            .field("provider", &self.provider)
            .field("team", &self.team)
            .field("key", &self.key)
            .field("weight", &self.weight)
            .field("secret", &REDACTED)
            .finish()
    }
}

impl fmt::Debug for admin::v1::Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Debug for admin::v1::CreateVirtualKeyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateVirtualKeyRequest")
            .field("virtual_key_id", &self.virtual_key_id)
            .field("virtual_key", &self.virtual_key)
            .field("import_secret", &REDACTED)
            .finish()
    }
}

impl fmt::Debug for admin::v1::CreateVirtualKeyResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateVirtualKeyResponse")
            .field("virtual_key", &self.virtual_key)
            .field("secret", &REDACTED)
            .finish()
    }
}
