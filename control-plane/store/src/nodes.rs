//! Nodes as the replicas last saw them.

use control_plane_core::nodes::{BootId, Node};
use uuid::Uuid;

use crate::store::retry;
use crate::stored::{from_unix_us, signed, to_unix_us, unsigned};
use crate::{Error, Store};

impl Store {
    /// Stores what a replica knows of some nodes; older reports never replace newer ones.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn save_nodes(&self, nodes: &[Node]) -> Result<(), Error> {
        // In one order, so that two replicas do not wait for each other.
        let mut nodes: Vec<&Node> = nodes.iter().collect();
        nodes.sort_by_key(|node| node.boot_id);
        retry(|| async {
            let mut tx = self.begin("save_nodes").await?;
            for node in &nodes {
                sqlx::query!(
                    "insert into node (boot_id, name, envoy_version, connected, acked_version,
                       connected_at, last_seen_at, rejected, replica)
                     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                     on conflict on constraint node_pkey do update set
                       name = excluded.name, envoy_version = excluded.envoy_version,
                       connected = excluded.connected, acked_version = excluded.acked_version,
                       connected_at = excluded.connected_at,
                       last_seen_at = excluded.last_seen_at, rejected = excluded.rejected,
                       replica = excluded.replica
                     where node.last_seen_at <= excluded.last_seen_at",
                    Uuid::from_bytes(node.boot_id.0),
                    without_nul(&node.name),
                    without_nul(&node.envoy_version),
                    node.connected,
                    signed(node.acked_version),
                    from_unix_us(node.connected_at_us),
                    from_unix_us(node.last_seen_us),
                    &node
                        .rejected
                        .iter()
                        .map(|text| without_nul(text))
                        .collect::<Vec<_>>(),
                    &*self.replica,
                )
                .execute(&mut *tx)
                .await?;
            }
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Notes that the nodes whose connections this replica had are not connected to it any more:
    /// to be called when it starts, since an earlier process of it may have been killed, and when
    /// it has ended them. Without a name of its own it does nothing.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn disconnect_own_nodes(&self) -> Result<(), Error> {
        sqlx::query!(
            "update node set connected = false where replica = $1 and replica <> '' and connected",
            &*self.replica,
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Every node that is known, by name.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn list_nodes(&self) -> Result<Vec<Node>, Error> {
        let rows = sqlx::query!(
            "select boot_id, name, envoy_version, connected, acked_version, connected_at,
                    last_seen_at, rejected
             from node order by name, boot_id"
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| Node {
                boot_id: BootId(row.boot_id.into_bytes()),
                name: row.name,
                envoy_version: row.envoy_version,
                connected: row.connected,
                acked_version: unsigned(row.acked_version),
                connected_at_us: to_unix_us(row.connected_at),
                last_seen_us: to_unix_us(row.last_seen_at),
                rejected: row.rejected,
            })
            .collect())
    }

    /// Drops nodes that were last seen before a moment (Unix microseconds), whatever they were
    /// then.
    ///
    /// # Errors
    /// When Postgres is away.
    pub async fn forget_nodes_before(&self, moment_us: i64) -> Result<(), Error> {
        sqlx::query!(
            "delete from node where last_seen_at < $1",
            from_unix_us(moment_us),
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}

/// Nodes choose these texts, and Postgres holds no NUL.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
