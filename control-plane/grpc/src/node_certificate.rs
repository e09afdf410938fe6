//! Nodes that present a certificate: it says who they may say they are.
//!
//! The TLS layer verifies a certificate before any call comes here: its authority, its dates, its
//! purpose. What is left is the name. A node may take each name that its certificate's subject
//! alternative names hold: a DNS name (one of `*.gateways.example` included), an IP address, or a
//! whole URI. The common name is not looked at, as nothing in TLS does any more.

use std::sync::Arc;

use rustls_pki_types::{CertificateDer, ServerName};
use tonic::service::Interceptor;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use tonic::{Request, Status};
use webpki::EndEntityCert;

use crate::auth::BearerToken;

/// Refuses every call that presents neither a certificate nor the token, with UNAUTHENTICATED.
#[derive(Clone, Debug)]
pub(crate) struct RequireNode(pub(crate) Option<BearerToken>);

/// Whose certificate a call came with, if with any.
#[derive(Clone, Debug)]
pub(crate) struct Names(Option<Arc<Vec<CertificateDer<'static>>>>);

impl Interceptor for RequireNode {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if Names::of(&request).0.is_some() {
            return Ok(request);
        }
        match &self.0 {
            Some(token) if token.is_presented_by(&request) => Ok(request),
            Some(_) => Err(Status::unauthenticated(
                "a client certificate or a valid `authorization: Bearer` token is required",
            )),
            None => Err(Status::unauthenticated("a client certificate is required")),
        }
    }
}

impl Names {
    /// The names of whoever made the call.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        let connection = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>();
        Self(connection.and_then(TlsConnectInfo::peer_certs))
    }

    /// Refuses a name that is not the node's, with PERMISSION_DENIED. One that came with a token
    /// may take any.
    pub(crate) fn check(&self, node: &str) -> Result<(), Status> {
        let Some(chain) = &self.0 else {
            return Ok(());
        };
        let certificate = chain.first().map(EndEntityCert::try_from);
        let Some(Ok(certificate)) = certificate else {
            return Err(Status::permission_denied(
                "the client certificate cannot be read",
            ));
        };
        let by_host = ServerName::try_from(node).is_ok_and(|name| {
            let valid = certificate.verify_is_valid_for_subject_name(&name);
            valid.is_ok()
        });
        if by_host || certificate.valid_uri_names().any(|uri| uri == node) {
            return Ok(());
        }
        let names: Vec<&str> = certificate
            .valid_dns_names()
            .chain(certificate.valid_uri_names())
            .collect();
        Err(Status::permission_denied(format!(
            "the client certificate is not for a node named `{node}`; its DNS names and URIs: {}",
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        )))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn names(sans: Vec<SanType>) -> Names {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = sans;
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Names(Some(Arc::new(vec![certificate.der().clone()])))
    }

    fn dns(name: &str) -> SanType {
        SanType::DnsName(name.try_into().unwrap())
    }

    #[test]
    fn a_certificate_gives_the_names_that_it_holds_and_no_others() {
        let names = names(vec![
            dns("gw-1"),
            dns("*.gateways.example"),
            SanType::IpAddress([10, 0, 0, 1].into()),
            SanType::URI("spiffe://example/gw/2".try_into().unwrap()),
        ]);
        for own in [
            "gw-1",
            "GW-1",
            "a.gateways.example",
            "10.0.0.1",
            "spiffe://example/gw/2",
        ] {
            assert!(names.check(own).is_ok(), "{own}");
        }
        for other in [
            "",
            "gw-2",
            "gw-1.example",
            "gateways.example",
            "a.b.gateways.example",
            "10.0.0.2",
            "spiffe://example/gw/20",
            // rcgen's default common name.
            "rcgen self signed cert",
        ] {
            let refused = names.check(other).unwrap_err();
            assert_eq!(refused.code(), tonic::Code::PermissionDenied, "{other}");
            assert!(refused.message().contains("gw-1"), "{refused}");
        }
    }

    #[test]
    fn a_certificate_without_names_is_for_nobody() {
        let refused = names(Vec::new()).check("gw-1").unwrap_err();
        assert!(refused.message().ends_with("none"), "{refused}");
    }

    #[test]
    fn a_node_with_the_token_may_take_any_name() {
        assert!(Names(None).check("gw-1").is_ok());
    }

    #[test]
    fn where_there_is_no_token_only_a_certificate_opens() {
        let refused = RequireNode(None).call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unauthenticated);
        let token = BearerToken::new("test-token-0123456789").unwrap();
        let mut guard = RequireNode(Some(token));
        assert!(guard.call(Request::new(())).is_err());
        let mut request = Request::new(());
        let header = "Bearer test-token-0123456789".parse().unwrap();
        request.metadata_mut().insert("authorization", header);
        assert!(guard.call(request).is_ok());
    }
}
