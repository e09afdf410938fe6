//! Envoy's attributes that the ABI can read, by id.
//!
//! Ids are positions in Envoy's enum, so one inserted in a later release shifts those after it:
//! this is the one table of them, and its test holds it to Envoy 1.40.

/// An attribute of a stream, its connection or its upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Attribute {
    /// `:path` with query.
    RequestPath = 0,
    /// `:path` without query.
    RequestUrlPath = 1,
    /// `:authority`.
    RequestHost = 2,
    /// `:scheme`.
    RequestScheme = 3,
    /// `:method`.
    RequestMethod = 4,
    /// `x-request-id`.
    RequestId = 9,
    /// Protocol of the request, such as `HTTP/1.1`.
    RequestProtocol = 10,
    /// Request body bytes so far, a number.
    RequestSize = 13,
    /// Response status, a number; 0 when none was sent.
    ResponseCode = 15,
    /// Why the response is what it is, text.
    ResponseCodeDetails = 16,
    /// Response flags, a bit set read as a number.
    ResponseFlags = 17,
    /// Response body bytes so far, a number.
    ResponseSize = 21,
    /// Address of the client.
    SourceAddress = 24,
    /// Id of the downstream connection, a number.
    ConnectionId = 28,
    /// Address of the upstream host.
    UpstreamAddress = 41,
    /// This Envoy's own address on the attempt's upstream connection; none until there is one.
    UpstreamLocalAddress = 51,
    /// Why the upstream connection failed.
    UpstreamTransportFailureReason = 52,
    /// Attempts so far, a number; 0 before the router.
    UpstreamRequestAttemptCount = 53,
    /// Name of the upstream cluster.
    XdsClusterName = 57,
    /// Name of the matched route.
    XdsRouteName = 61,
}

#[cfg(test)]
mod tests {
    use super::Attribute;

    #[test]
    fn ids_are_the_positions_of_envoy_1_40() {
        let ids = [
            (Attribute::RequestPath, 0),
            (Attribute::RequestUrlPath, 1),
            (Attribute::RequestHost, 2),
            (Attribute::RequestScheme, 3),
            (Attribute::RequestMethod, 4),
            (Attribute::RequestId, 9),
            (Attribute::RequestProtocol, 10),
            (Attribute::RequestSize, 13),
            (Attribute::ResponseCode, 15),
            (Attribute::ResponseCodeDetails, 16),
            (Attribute::ResponseFlags, 17),
            (Attribute::ResponseSize, 21),
            (Attribute::SourceAddress, 24),
            (Attribute::ConnectionId, 28),
            (Attribute::UpstreamAddress, 41),
            (Attribute::UpstreamLocalAddress, 51),
            (Attribute::UpstreamTransportFailureReason, 52),
            (Attribute::UpstreamRequestAttemptCount, 53),
            (Attribute::XdsClusterName, 57),
            (Attribute::XdsRouteName, 61),
        ];
        for (attribute, id) in ids {
            assert_eq!(attribute as u32, id, "{attribute:?}");
        }
    }
}
