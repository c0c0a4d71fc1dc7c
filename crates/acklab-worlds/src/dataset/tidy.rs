//! A data set as one table: a row for each message, a column for each factor.

use acklab_lab::columns::{Column, Columns};

use super::case::CaseFiles;

/// The table of `cases`.
pub fn columns(cases: &[CaseFiles]) -> Columns {
    let (mut receivers, mut receiver) = (Vec::<String>::new(), Vec::new());
    let (mut nagle, mut rtt, mut replication, mut id) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut made, mut left, mut length, mut delay) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for case in cases {
        let name = &case.name.receiver;
        let index = receivers.iter().position(|one| one == name).unwrap_or_else(|| {
            receivers.push(name.clone());
            receivers.len() - 1
        });
        for (number, run) in (0..).zip(&case.runs) {
            for waited in run.waited.values() {
                receiver.push(index as u32);
                nagle.push(u32::from(!case.name.nagle));
                rtt.push(case.name.rtt as f64 / 1e6);
                replication.push(number);
                id.push(waited.made.id as u32);
                made.push(waited.made.at.units(9) as i64);
                left.push(waited.left.at.units(9) as i64);
                length.push(waited.left.length as u32);
                delay.push(waited.delay.value());
            }
        }
    }
    Columns::default()
        .with("receiver", Column::Words { dictionary: receivers, indices: receiver })
        .with(
            "nagle",
            Column::Words { dictionary: vec!["on".into(), "off".into()], indices: nagle },
        )
        .with("rtt_ms", Column::F64(rtt))
        .with("replication", Column::U32(replication))
        .with("id", Column::U32(id))
        .with("generated_ns", Column::I64(made))
        .with("sent_ns", Column::I64(left))
        .with("length_bytes", Column::U32(length))
        .with("buffering_delay_us", Column::F64(delay))
}
