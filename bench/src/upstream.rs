//! An upstream that answers every chat request with the same bytes, and does as little as it can.

use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::{
    HeaderMap, Request, Response,
    body::{Body, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    time::{Instant, Sleep, sleep_until},
};

use crate::connection::Pace;

/// Request headers that ask for a stream: how many events have content, and the gap between two.
pub const EVENTS_HEADER: &str = "x-load-events";
pub const GAP_HEADER: &str = "x-load-gap-us";

const ANSWER: &[u8] = br#"{"id":"c-1","object":"chat.completion","created":1750000000,"model":"load-1","choices":[{"index":0,"message":{"role":"assistant","content":"A short answer, as long as an answer to a short question often is: some two hundred bytes of plain text, which nobody reads, and which is the same every time it is sent."},"finish_reason":"stop"}],"usage":{"prompt_tokens":210,"completion_tokens":40,"total_tokens":250}}"#;
const EVENT: &[u8] = b"data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1750000000,\"model\":\"load-1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
const END: &[u8] = b"data: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1750000000,\"model\":\"load-1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1750000000,\"model\":\"load-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":210,\"completion_tokens\":40,\"total_tokens\":250}}\n\ndata: [DONE]\n\n";

/// Serves until it is killed.
///
/// # Errors
/// The address is taken.
pub async fn serve(listen: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        // Each event leaves when it is made.
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let serving =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            // Its client has gone: nobody to tell.
            drop(serving.await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<Either<Full<Bytes>, Events>>, hyper::Error> {
    let pace = pace(request.headers());
    request.into_body().collect().await?;
    let (content_type, body) = match pace {
        None => (
            "application/json",
            Either::Left(Full::new(Bytes::from_static(ANSWER))),
        ),
        Some(pace) => ("text/event-stream", Either::Right(Events::new(pace))),
    };
    let mut response = Response::new(body);
    let content_type = hyper::header::HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, content_type);
    Ok(response)
}

fn pace(headers: &HeaderMap) -> Option<Pace> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    Some(Pace {
        events: u32::try_from(number(EVENTS_HEADER)?).ok()?,
        gap_us: number(GAP_HEADER)?,
    })
}

/// A stream's body: the first event at once, each further one a gap later, then the end.
struct Events {
    left: u32,
    gap: Duration,
    /// When the next event is due; at once, if nothing is said.
    due: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl Events {
    fn new(pace: Pace) -> Self {
        Self {
            left: pace.events,
            gap: Duration::from_micros(pace.gap_us),
            due: None,
            ended: false,
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if let Some(due) = &mut self.due {
            ready!(due.as_mut().poll(context));
        }
        if self.left == 0 {
            self.ended = true;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(END)))));
        }
        self.left -= 1;
        if !self.gap.is_zero() {
            // From now on, as a model that takes so long for each token.
            self.due = Some(Box::pin(sleep_until(Instant::now() + self.gap)));
        }
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(EVENT)))))
    }
}
