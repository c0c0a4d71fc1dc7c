//! What a host is set up with: system controls (Linux's names and defaults, 6.18), its route, its device.

/// Microseconds of virtual time.
pub type Us = u64;

/// A millisecond.
pub const MS: Us = 1_000;
/// A second.
pub const SECOND: Us = 1_000_000;

/// "No slow-start threshold yet", packets.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Congestion controls that can be chosen.
pub const CONGESTION_CONTROLS: [&str; 3] = ["reno", "cubic", "dctcp"];

/// Why a setting was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadSetting {
    /// No such name is known here.
    Unknown,
    /// The value is not one.
    Value,
}

/// System controls by name; the values that TCP asks for have methods.
#[derive(Clone, Debug)]
pub struct Sysctls {
    /// By their place in [`KNOWN`].
    values: Vec<Vec<i64>>,
    congestion_control: String,
    /// The key of fast open's cookies, four words.
    fastopen_key: Option<[u32; 4]>,
}

/// Names, defaults (several numbers where the control has several), and the place of each.
macro_rules! known {
    ($($name:ident: $($value:expr),+;)+) => {
        #[expect(non_camel_case_types, reason = "the kernel's names")]
        enum Known {
            $($name,)+
        }

        const KNOWN: &[(&str, &[i64])] = &[$((stringify!($name), &[$($value),+]),)+];

        /// Where a control stands. Every segment asks some ten times, with names that are known when this is compiled:
        /// inlined, nothing is left of the search.
        #[inline(always)]
        fn place(name: &str) -> Option<usize> {
            $(if name == stringify!($name) {
                return Some(Known::$name as usize);
            })+
            None
        }
    };
}

known! {
    hystart: 1;
    hystart_detect: 3;
    fast_convergence: 1;
    tcp_friendliness: 1;
    auto_flowlabels: 1;
    tcp_abort_on_overflow: 0;
    tcp_adv_win_scale: 1;
    tcp_app_win: 31;
    tcp_autocorking: 1;
    tcp_backlog_ack_defer: 1;
    tcp_base_mss: 1024;
    tcp_challenge_ack_limit: i32::MAX as i64;
    tcp_comp_sack_delay_ns: 1_000_000;
    tcp_comp_sack_nr: 44;
    tcp_comp_sack_slack_ns: 100_000;
    tcp_dsack: 1;
    tcp_early_demux: 1;
    tcp_early_retrans: 3;
    tcp_ecn: 2;
    tcp_ecn_fallback: 1;
    tcp_ecn_option: 2;
    tcp_ecn_option_beacon: 3;
    tcp_fack: 0;
    tcp_fastopen: 1;
    tcp_fastopen_blackhole_timeout_sec: 0;
    tcp_fin_timeout: 60;
    tcp_frto: 2;
    tcp_fwmark_accept: 0;
    tcp_invalid_ratelimit: 500;
    tcp_keepalive_intvl: 75;
    tcp_keepalive_probes: 9;
    tcp_keepalive_time: 7200;
    tcp_limit_output_bytes: 4_194_304;
    tcp_low_latency: 0;
    tcp_max_orphans: 131_072;
    tcp_max_reordering: 300;
    tcp_max_syn_backlog: 2048;
    tcp_max_tw_buckets: 131_072;
    tcp_mem: 287_901, 383_869, 575_802;
    tcp_migrate_req: 0;
    tcp_min_rtt_wlen: 300;
    tcp_min_snd_mss: 48;
    tcp_min_tso_segs: 2;
    tcp_moderate_rcvbuf: 1;
    tcp_mtu_probe_floor: 48;
    tcp_mtu_probing: 0;
    tcp_no_metrics_save: 0;
    tcp_no_ssthresh_metrics_save: 1;
    tcp_notsent_lowat: u32::MAX as i64;
    tcp_orphan_retries: 0;
    tcp_pacing_ca_ratio: 120;
    tcp_pacing_ss_ratio: 200;
    tcp_pingpong_thresh: 1;
    tcp_plb_cong_thresh: 128;
    tcp_plb_enabled: 0;
    tcp_plb_idle_rehash_rounds: 3;
    tcp_plb_rehash_rounds: 12;
    tcp_plb_suspend_rto_sec: 60;
    tcp_probe_interval: 600;
    tcp_probe_threshold: 8;
    tcp_recovery: 1;
    tcp_reflect_tos: 0;
    tcp_reordering: 3;
    tcp_retrans_collapse: 1;
    tcp_retries1: 3;
    tcp_retries2: 15;
    tcp_rfc1337: 0;
    tcp_rmem: 4096, 131_072, 6_291_456;
    tcp_rto_max_ms: 120_000;
    tcp_rto_min_us: 200_000;
    tcp_sack: 1;
    tcp_shrink_window: 0;
    tcp_slow_start_after_idle: 1;
    tcp_stdurg: 0;
    tcp_syn_linear_timeouts: 4;
    tcp_syn_retries: 6;
    tcp_synack_retries: 5;
    tcp_syncookies: 1;
    tcp_thin_linear_timeouts: 0;
    tcp_timestamps: 1;
    tcp_tso_rtt_log: 9;
    tcp_tso_win_divisor: 3;
    tcp_tw_reuse: 2;
    tcp_tw_reuse_delay: 1000;
    tcp_window_scaling: 1;
    tcp_wmem: 4096, 16_384, 4_194_304;
    tcp_workaround_signed_windows: 0;
    ip_local_port_range: 32_768, 60_999;
    ip_local_reserved_ports: 0;
    ip_no_pmtu_disc: 0;
    ip_default_ttl: 64;
    ip_forward: 0;
    ip_forward_use_pmtu: 0;
    min_adv_mss: 256;
    min_pmtu: 552;
    mtu_expires: 600;
    icmp_ratelimit: 1000;
    icmp_ratemask: 6168;
    rmem_max: 4_194_304;
    wmem_max: 4_194_304;
    rmem_default: 212_992;
    wmem_default: 212_992;
    optmem_max: 131_072;
    somaxconn: 4096;
    netdev_max_backlog: 1000;
    default_qdisc: 0;
    flowlabel_reflect: 0;
    rp_filter: 0;
    busy_read: 0;
    busy_poll: 0;
    high_order_alloc_disable: 0;
}

impl Default for Sysctls {
    fn default() -> Self {
        let values = KNOWN.iter().map(|(_, value)| value.to_vec()).collect();
        Self { values, congestion_control: "cubic".to_owned(), fastopen_key: None }
    }
}

impl Sysctls {
    /// Sets `net.ipv4.tcp_sack` or `net/ipv4/tcp_sack` to the text after `=`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        let last = name.rsplit(['.', '/']).next().unwrap_or(name);
        let text = value.trim().trim_matches(['"', '\'']);
        match last {
            "tcp_congestion_control" => {
                if !CONGESTION_CONTROLS.contains(&text) {
                    return Err(BadSetting::Value);
                }
                text.clone_into(&mut self.congestion_control);
                return Ok(());
            }
            "tcp_allowed_congestion_control" | "default_qdisc" => return Ok(()),
            "tcp_fastopen_key" => {
                self.fastopen_key = key(text);
                return Ok(());
            }
            _ => {}
        }
        let Some(slot) = place(last).and_then(|at| self.values.get_mut(at)) else {
            return Err(BadSetting::Unknown);
        };
        let numbers: Option<Vec<i64>> = text.split_whitespace().map(number).collect();
        match numbers {
            Some(numbers) if last == "tcp_ecn" && numbers.iter().any(|&n| n > 5) => {
                Err(BadSetting::Value)
            }
            Some(numbers) if !numbers.is_empty() => {
                *slot = numbers;
                Ok(())
            }
            _ => Err(BadSetting::Value),
        }
    }

    /// The first number of `name`, which must be one of those known.
    #[expect(clippy::inline_always, reason = "see `place`")]
    #[inline(always)]
    pub fn of(&self, name: &str) -> i64 {
        self.nth(name, 0)
    }

    /// Whether the number of `name` is not 0.
    #[expect(clippy::inline_always, reason = "see `place`")]
    #[inline(always)]
    pub fn is_on(&self, name: &str) -> bool {
        self.of(name) != 0
    }

    /// The number at `index` of `name`.
    #[expect(clippy::inline_always, reason = "see `place`")]
    #[inline(always)]
    pub fn nth(&self, name: &str, index: usize) -> i64 {
        let known = place(name).and_then(|at| self.values.get(at)?.get(index).copied());
        debug_assert!(known.is_some(), "{name} is known");
        known.unwrap_or(0)
    }

    /// The congestion control of new sockets.
    pub fn congestion_control(&self) -> &str {
        &self.congestion_control
    }

    /// The text of a control, as reading it shows.
    pub fn text(&self, name: &str) -> Option<String> {
        if name == "tcp_congestion_control" {
            return Some(self.congestion_control.clone());
        }
        let values = self.values.get(place(name)?)?;
        Some(values.iter().map(i64::to_string).collect::<Vec<_>>().join(" "))
    }

    /// The key of fast open.
    pub const fn fastopen_key(&self) -> Option<[u32; 4]> {
        self.fastopen_key
    }
}

/// A number as the kernel reads it: decimal, `0x` or octal with a leading 0.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let octal = digits.strip_prefix('0').filter(|rest| !rest.is_empty());
    let value = match (hex, octal) {
        (Some(hex), _) => i64::from_str_radix(hex, 16),
        (None, Some(octal)) => i64::from_str_radix(octal, 8),
        (None, None) => digits.parse(),
    };
    value.ok().and_then(|n| n.checked_mul(sign))
}

fn key(text: &str) -> Option<[u32; 4]> {
    let first = text.split(',').next()?;
    let words: Vec<u32> =
        first.split('-').map(|w| u32::from_str_radix(w, 16)).collect::<Result<_, _>>().ok()?;
    words.try_into().ok()
}

/// The one route of the host, and the device behind it. 0: not set.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The device's MTU, bytes.
    pub device_mtu: u32,
    /// The path's MTU as ICMP told it, bytes.
    pub path_mtu: u32,
    /// `mtu` metric.
    pub mtu: u32,
    /// `mtu lock`: ICMP does not change it.
    pub mtu_locked: bool,
    /// `advmss` metric.
    pub advmss: u32,
    /// `initcwnd` metric, segments.
    pub initcwnd: u32,
    /// `initrwnd` metric, segments.
    pub initrwnd: u32,
    /// `rto_min` metric.
    pub rto_min: Us,
    /// `quickack` metric.
    pub quickack: bool,
    /// `window` metric: the largest to announce.
    pub window: u32,
    /// `cwnd` metric with `lock`.
    pub cwnd: u32,
    /// `ssthresh` metric.
    pub ssthresh: u32,
    /// `rtt` metric.
    pub rtt: Us,
    /// `rttvar` metric.
    pub rttvar: Us,
    /// `reordering` metric.
    pub reordering: u32,
    /// `features ecn`.
    pub ecn: bool,
    /// Congestion control of the route.
    pub congestion: Option<&'static str>,
    /// Bytes of an IP header.
    pub ip_header: u32,
    /// Most packets in one burst; 1 without segmentation offload.
    pub gso_max_segs: u32,
    /// Most bytes in one burst.
    pub gso_max_size: u32,
    /// Room for the headers of all layers before a packet (`MAX_TCP_HEADER`), bytes: 320 in kernels of distributions, less in
    /// those without radios and tunnels.
    pub header_room: u32,
}

impl Default for Route {
    fn default() -> Self {
        Self {
            device_mtu: 1500,
            path_mtu: 0,
            mtu: 0,
            mtu_locked: false,
            advmss: 0,
            initcwnd: 0,
            initrwnd: 0,
            rto_min: 0,
            quickack: false,
            window: 0,
            cwnd: 0,
            ssthresh: 0,
            rtt: 0,
            rttvar: 0,
            reordering: 0,
            ecn: false,
            congestion: None,
            ip_header: 20,
            gso_max_segs: 65_535,
            gso_max_size: 65_536,
            header_room: 320,
        }
    }
}

impl Route {
    /// The MTU in force.
    pub fn mtu(&self) -> u32 {
        let base = if self.mtu > 0 { self.mtu } else { self.device_mtu };
        if self.path_mtu > 0 && !self.mtu_locked { base.min(self.path_mtu) } else { base }
    }

    /// The MSS to announce: the metric, or what the device and the `mtu` metric leave.
    pub fn advmss(&self, floor: u32) -> u32 {
        if self.advmss > 0 {
            return self.advmss;
        }
        self.mtu().saturating_sub(self.ip_header + 20).max(floor)
    }

    /// The least retransmission time-out.
    pub fn rto_min(&self, sysctls: &Sysctls) -> Us {
        if self.rto_min > 0 { self.rto_min } else { sysctls.of("tcp_rto_min_us") as Us }
    }

    /// Segments of the initial window.
    pub const fn initial_window(&self) -> u32 {
        if self.initcwnd > 0 { self.initcwnd } else { 10 }
    }
}

/// What every step of a connection may ask of its host.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// Virtual time.
    pub now: Us,
    /// System controls.
    pub sysctls: &'a Sysctls,
    /// The route.
    pub route: &'a Route,
}

impl Env<'_> {
    /// The timestamp clock in its milliseconds.
    pub const fn tick(&self) -> u32 {
        (self.now / MS) as u32
    }
}
