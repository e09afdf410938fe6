//! The small enums that cross the ABI: header maps, body buffers, hook answers. The default answer passes on.
//!
//! Discriminants are Envoy's (`abi.h`, "v0.2.0") and travel as C ints.

/// One of the four header maps of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum HeaderMap {
    /// Request headers; changes leak into the next attempt.
    Request = 0,
    /// Request trailers.
    RequestTrailers = 1,
    /// Response headers.
    Response = 2,
    /// Response trailers.
    ResponseTrailers = 3,
}

/// One of the four body buffers of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Body {
    /// The request frame that the running body hook was called for.
    ReceivedRequest = 0,
    /// What earlier request body hooks held back.
    BufferedRequest = 1,
    /// The response frame that the running body hook was called for.
    ReceivedResponse = 2,
    /// What earlier response body hooks held back.
    BufferedResponse = 3,
}

/// Answer of a headers hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum HeadersStatus {
    /// Headers go on to the next filter.
    #[default]
    Continue = 0,
    /// Headers are held; body hooks still come, and one that answers `Continue` releases them.
    StopIteration = 1,
    /// Headers go on, but not their end of stream.
    ContinueAndDontEndStream = 2,
    /// Everything is held and buffered until `continue_decoding` or `continue_encoding`.
    StopAllIterationAndBuffer = 3,
    /// Everything is held, with back-pressure at the buffer limit.
    StopAllIterationAndWatermark = 4,
}

/// Answer of a body hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum BodyStatus {
    /// The frame goes on, after held headers and buffered frames.
    #[default]
    Continue = 0,
    /// The frame is buffered; over the buffer limit Envoy answers 413 or 500 itself.
    StopIterationAndBuffer = 1,
    /// The frame is buffered, with back-pressure at the buffer limit.
    StopIterationAndWatermark = 2,
    /// The frame is dropped from the buffer; the filter keeps what it needs.
    StopIterationNoBuffer = 3,
}

/// Answer of a trailers hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum TrailersStatus {
    /// Trailers go on.
    #[default]
    Continue = 0,
    /// Trailers are held.
    StopIteration = 1,
}

/// Answer of the local-reply hook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum LocalReplyStatus {
    /// Envoy sends the reply, or cuts the stream when response headers are already out.
    #[default]
    Continue = 0,
    /// Envoy resets the stream instead of replying.
    ContinueAndResetStream = 1,
}

/// Where a metadata value is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum MetadataSource {
    /// The stream's dynamic metadata, shared by both filter kinds and the specifier.
    Dynamic = 0,
    /// The matched route.
    Route = 1,
    /// The upstream cluster.
    Cluster = 2,
    /// The upstream host.
    Host = 3,
    /// The locality of the upstream host.
    HostLocality = 4,
}

/// Level of a log line in Envoy's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum LogLevel {
    /// Finest detail.
    Trace = 0,
    /// For developers.
    Debug = 1,
    /// Normal life-cycle events.
    Info = 2,
    /// Something works, but not as it should.
    Warn = 3,
    /// Something failed.
    Error = 4,
    /// The process can not go on.
    Critical = 5,
}
