//! What stands in front of several replicas: connections go round to whichever takes them.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::Result;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A TCP balancer on a port of its own. Dropping it lets no more connections through.
#[derive(Debug)]
pub struct Balancer {
    pub port: u16,
    is_over: Arc<AtomicBool>,
}

impl Balancer {
    /// Spreads connections over these ports of this machine, in turn; one that does not take a
    /// connection is passed over.
    pub fn start(targets: Vec<u16>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        thread::spawn(move || {
            for (turn, client) in listener.incoming().flatten().enumerate() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let targets = targets.clone();
                thread::spawn(move || join(client, &targets, turn));
            }
        });
        Ok(Self { port, is_over })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the listener; whether it got through makes no difference.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

/// Carries bytes between a client and the first target that takes it, until either goes away.
fn join(client: TcpStream, targets: &[u16], turn: usize) {
    let in_turn = targets.iter().cycle().skip(turn).take(targets.len());
    let connected = in_turn
        .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
        .find_map(|address| TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok());
    let Some(server) = connected else {
        return;
    };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (Ok(client_again), Ok(server_again)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    let back = thread::spawn(move || carry(server_again, client_again));
    carry(client, server);
    drop(back.join());
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        let bytes = buffer.get(..read).unwrap_or_default();
        if bytes.is_empty() || to.write_all(bytes).is_err() {
            break;
        }
    }
    // A connection that is lost on one side is lost on both.
    drop((from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both)));
}
