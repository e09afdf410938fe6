//! Deliveries and answers on the wire.

use control_plane_core::ledger::{Answer, Content, Delivery, Shard};
use control_plane_core::nodes::BootId;
use proto::metering::v1::{Ack, Batch, Gap, OpenShard, Resume, UsageDown, usage_down};
use tonic::Status;

use crate::status;

/// The shard that is opened, and the node's name.
pub(super) fn opening(open: OpenShard) -> Result<(Shard, String), Status> {
    let shard = shard(&open.boot_id, open.shard, "open.boot_id")?;
    let is_label = open.node.len() <= 256 && !open.node.chars().any(char::is_control);
    if !is_label {
        return Err(status::invalid(
            "open.node",
            "must be at most 256 bytes without controls",
        ));
    }
    Ok((shard, open.node))
}

/// A delivery of records.
pub(super) fn records(batch: Batch) -> Result<Delivery, Status> {
    checked(Delivery {
        shard: shard(&batch.boot_id, batch.shard, "batch.boot_id")?,
        content: Content::Records {
            first_seq: batch.first_seq,
            records: batch.records,
        },
    })
}

/// A delivery of the fact that records are lost.
pub(super) fn gap(gap: Gap) -> Result<Delivery, Status> {
    checked(Delivery {
        shard: shard(&gap.boot_id, gap.shard, "gap.boot_id")?,
        content: Content::Gap {
            from_seq: gap.from_seq,
            to_seq: gap.to_seq,
            reason: gap.reason,
        },
    })
}

/// An answer's wire form.
pub(super) fn answer(answer: Answer) -> UsageDown {
    let message = match answer {
        Answer::Ack { shard, through_seq } => usage_down::Message::Ack(Ack {
            boot_id: shard.boot_id.0.to_vec(),
            shard: shard.number,
            through_seq,
        }),
        Answer::Resume { shard, next_seq } => usage_down::Message::Resume(Resume {
            boot_id: shard.boot_id.0.to_vec(),
            shard: shard.number,
            next_seq,
        }),
    };
    UsageDown {
        message: Some(message),
    }
}

fn shard(boot_id: &[u8], number: u32, field: &str) -> Result<Shard, Status> {
    let boot_id =
        BootId::from_slice(boot_id).ok_or_else(|| status::invalid(field, "must be 16 bytes"))?;
    Ok(Shard { boot_id, number })
}

fn checked(delivery: Delivery) -> Result<Delivery, Status> {
    delivery
        .validate()
        .map_err(|fault| status::from_faults(&[fault]))?;
    Ok(delivery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_node_may_send_is_refused_at_its_field() {
        let message = |result: Result<Delivery, Status>| result.unwrap_err().message().to_owned();
        let boot_id = vec![1; 16];
        assert_eq!(
            message(records(Batch {
                boot_id: vec![1; 15],
                ..Batch::default()
            })),
            "batch.boot_id: must be 16 bytes"
        );
        let at_zero = Batch {
            boot_id: boot_id.clone(),
            first_seq: 0,
            ..Batch::default()
        };
        assert!(message(records(at_zero)).starts_with("batch.first_seq: "));
        let backwards = Gap {
            boot_id: boot_id.clone(),
            from_seq: 3,
            to_seq: 2,
            ..Gap::default()
        };
        assert!(message(gap(backwards)).starts_with("gap.to_seq: "));
        let open = OpenShard {
            boot_id,
            node: "a\nb".into(),
            ..OpenShard::default()
        };
        assert!(opening(open).is_err());
    }
}
