//! One subject a script, on an accepted connection.

use std::collections::BTreeSet;

use super::script::{RECEIVER, SENDER, Script};

impl Script {
    /// A flight whose packets arrive with holes, which are filled one after another.
    pub(super) fn losses(&mut self) {
        let total = self.dice.of(&[4, 8, 10, 12, 20, 30]);
        self.event(&format!("write(4, ..., {0}) = {0}", total * self.unit()));
        let mut got = BTreeSet::new();
        self.now += 100;
        for packet in 0..total.min(10) {
            if self.dice.roll(5) > 0 {
                got.insert(packet);
                self.acknowledge(&got);
                self.now += self.dice.of(&[0, 1, 2, 10]);
            }
        }
        for _ in 0..4 + self.dice.roll(10) {
            self.now += self.dice.of(&[10, 30, 100, 100, 250, 600]);
            match self.dice.roll(4) {
                0 => self.event(&format!("write(4, ..., {0}) = {0}", 3 * self.unit())),
                1 => got.extend(0..total),
                _ => {
                    let hole = (0..total).find(|packet| !got.contains(packet));
                    got.extend(hole);
                }
            }
            self.acknowledge(&got);
            self.event(SENDER);
        }
    }

    /// Data in order, out of it and again, with reads.
    pub(super) fn arrivals(&mut self) {
        let (mut next, mut sent) = (1, Vec::new());
        for _ in 0..8 + self.dice.roll(22) {
            let len = self.dice.of(&[1000, 1000, 1000, 100, 500, 1460]);
            match self.dice.roll(20) {
                0..12 => {
                    self.packet(&format!("P. {next}:{}({len}) ack 1 win 257", next + len), "");
                    sent.push((next, len));
                    next += len;
                }
                12..15 => {
                    sent.push((next, 1000));
                    next += 1000;
                    self.packet(&format!(". {next}:{}({len}) ack 1 win 257", next + len), "");
                    next += len;
                }
                15..18 if !sent.is_empty() => {
                    let (from, len) = sent[self.dice.roll(sent.len() as u64) as usize];
                    self.packet(&format!(". {from}:{}({len}) ack 1 win 257", from + len), "");
                }
                _ => {
                    let most = self.dice.of(&[100, 1000, 5000]);
                    self.event(&format!("read(4, ..., {most}) = {most}"));
                }
            }
            self.now += self.dice.of(&[0, 0, 1, 5, 20, 60, 250]);
            self.event(RECEIVER);
        }
    }

    /// Small writes with and without Nagle's algorithm, CORK, MSG_MORE and MSG_EOR.
    pub(super) fn writes(&mut self) {
        let (mut total, mut acked) = (0, 0);
        for _ in 0..8 + self.dice.roll(16) {
            match self.dice.roll(10) {
                0..6 => {
                    let len = self.dice.of(&[10, 100, 300, 999, 1000, 1500, 2500]);
                    let flags = self.dice.of(&["0", "0", "0", "MSG_MORE", "MSG_EOR"]);
                    self.event(&format!("send(4, ..., {len}, {flags}) = {len}"));
                    total += len;
                }
                6 => {
                    let name = self.dice.of(&["TCP_CORK", "TCP_NODELAY"]);
                    let on = self.dice.roll(2);
                    self.event(&format!("setsockopt(4, SOL_TCP, {name}, [{on}], 4) = 0"));
                }
                _ => {
                    acked = total.max(acked);
                    let window = self.window;
                    self.packet(&format!(". 1:1(0) ack {} win {window}", acked + 1), "");
                }
            }
            self.now += self.dice.of(&[0, 1, 10, 50, 250]);
            self.event(SENDER);
        }
    }

    /// Bulk in slow start and beyond, acknowledged in stretches, with windows that open and close.
    pub(super) fn growth(&mut self) {
        let unit = self.unit();
        let (mut written, mut acked, mut sent) = (0, 0, 0);
        for _ in 0..10 + self.dice.roll(12) {
            if written < acked + 40 {
                let more = self.dice.of(&[1, 5, 20, 40]);
                self.event(&format!("write(4, ..., {0}) = {0}", more * unit));
                written += more;
            }
            sent = written.min(acked + 10).max(sent);
            self.now += self.dice.of(&[20, 50, 50, 50, 50, 700]);
            let step = self.dice.of(&[1, 2, 2, 4, 10]);
            while acked < sent {
                acked = (acked + step).min(sent);
                let window = if self.dice.roll(12) == 0 { 10 } else { self.window };
                self.packet(&format!(". 1:1(0) ack {} win {window}", acked * unit + 1), "");
                self.now += self.dice.of(&[0, 0, 1, 5]);
            }
            self.event(SENDER);
        }
    }

    /// The peer's window closes, and opens after a while.
    pub(super) fn windows(&mut self) {
        let unit = self.unit();
        self.event(&format!("write(4, ..., {0}) = {0}", 20 * unit));
        let mut acked = 0;
        for _ in 0..6 + self.dice.roll(6) {
            self.now += self.dice.of(&[30, 60, 300, 900, 1500]);
            acked = (acked + self.dice.roll(4)).min(10);
            let window = self.dice.of(&[0, 0, 1, 3, 8, 16, 50]);
            self.packet(&format!(". 1:1(0) ack {} win {window}", acked * unit + 1), "");
            self.event(SENDER);
        }
    }

    /// Arrivals with marks, and what a sender makes of echoes (RFC 3168).
    pub(super) fn marks(&mut self) {
        let (mut next, mut written, mut acked) = (1, 0, 0);
        for _ in 0..10 + self.dice.roll(14) {
            match self.dice.roll(3) {
                0 => {
                    let len = self.dice.of(&[1, 3, 6]);
                    self.event(&format!("write(4, ..., {0}) = {0}", len * self.unit()));
                    written += len * self.unit();
                }
                1 => {
                    let mark = self.dice.of(&["[ect0] ", "[ce] ", "[noecn] "]);
                    let flags = self.dice.of(&["P.", ".", "W."]);
                    let now = acked + 1;
                    self.packet(
                        &format!("{mark}{flags} {next}:{}(1000) ack {now} win 257", next + 1000),
                        "",
                    );
                    next += 1000;
                }
                _ => {
                    acked = if self.dice.roll(2) == 0 { written } else { acked };
                    let flags = self.dice.of(&[".", "E.", "E."]);
                    self.packet(&format!("{flags} {next}:{next}(0) ack {} win 257", acked + 1), "");
                }
            }
            self.now += self.dice.of(&[5, 10, 30, 60]);
            self.event(SENDER);
        }
    }

    /// Segments that no honest peer sends (RFC 5961, RFC 9293 section 3.10.7).
    pub(super) fn wrong(&mut self) {
        self.event("write(4, ..., 3000) = 3000");
        self.now += 50;
        let mut next = 1;
        for _ in 0..8 + self.dice.roll(8) {
            let flags =
                self.dice.of(&[".", ".", "P.", "R", "R.", "S", "S.", "F.", "-", "FP.", "U."]);
            let seq = self.dice.of(&[
                next,
                next,
                next + 1,
                next + 500,
                4_000_000_000_u64,
                70_000,
                next + 100_000,
            ]);
            let len = self.dice.of(&[0, 0, 1, 100, 1000]);
            let ack = self.dice.of(&[1, 1001, 3001, 3001, 3002, 90_001, 4_200_000_000_u64]);
            let acks = if flags.contains('.') { format!(" ack {ack}") } else { String::new() };
            self.packet(
                &format!("{flags} {seq}:{}({len}){acks} win 257", (seq + len) % (1_u64 << 32)),
                "",
            );
            if seq == next && flags.contains('.') && !flags.contains(['S', 'R']) {
                next += len;
            }
            self.now += self.dice.of(&[1, 60, 250, 600]);
            self.event(RECEIVER);
        }
    }

    /// Ends in every order.
    pub(super) fn ends(&mut self) {
        self.event("write(4, ..., 3000) = 3000");
        self.now += 50;
        let (mut next, mut acked) = (1, 1);
        for _ in 0..3 + self.dice.roll(5) {
            match self.dice.roll(7) {
                0 => self.event("close(4) = 0"),
                1 => {
                    let how = self.dice.of(&["SHUT_RD", "SHUT_WR", "SHUT_RDWR"]);
                    self.event(&format!("shutdown(4, {how}) = 0"));
                }
                2 => self.packet(&format!("F. {next}:{next}(0) ack {acked} win 257"), ""),
                3 => {
                    acked = self.dice.of(&[3001, 3002, acked]);
                    self.packet(&format!(". {next}:{next}(0) ack {acked} win 257"), "");
                }
                4 => self.packet(&format!("R. {next}:{next}(0) ack {acked} win 257"), ""),
                5 => {
                    self.packet(&format!("P. {next}:{}(100) ack {acked} win 257", next + 100), "");
                    next += 100;
                }
                _ => self.event("read(4, ..., 1000) = 1000"),
            }
            self.now += self.dice.of(&[1, 20, 100, 300]);
        }
    }
}
