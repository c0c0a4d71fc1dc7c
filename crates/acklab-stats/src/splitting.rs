//! Importance splitting: the probability of what plain runs never show.
//!
//! Fixed effort, in stages (Garvels, "The splitting method in rare event simulation", thesis, Twente
//! 2000, section 2.4). An importance, such as the length of a queue, rises towards the event. Each
//! stage starts the same number of trajectories from the states in which the stage before first
//! reached its level, and the product of the stages' success rates is an unbiased estimate, whatever
//! the levels; good ones make it precise. Several independent replications give an interval
//! ([`SplitEstimate`]). For events of a probability above 1e-3, plain runs are as good.
//!
//! A model need not be copied in the middle of a run. A trajectory is a list of [`Segment`]s, each a
//! seed and the time after which draws come from it: replaying a list gives the same states, and one
//! more segment makes a new future of an old past. The price is that the past is computed again; it
//! is within the factor of two to four of all splitting's cost for events that come early.

use serde::Serialize;

use crate::student::t_quantile;

/// The source of randomness from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Draws made after this time (in the model's unit, such as nanoseconds or steps) come from this
    /// seed. Draws made at this very time still come from the segment before; the first segment, at
    /// 0, serves from the start, and of several at one time the last.
    pub from: u64,
    /// The seed, from which the model derives all its streams anew.
    pub seed: u64,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    /// When the importance first reached the level; `None` if the run ended before.
    pub reached: Option<u64>,
    /// The largest importance up to that time, or up to the end.
    pub best: f64,
}

/// A model whose runs can be split.
pub trait Splittable {
    /// Runs the trajectory `path` from the start until its importance is at least `level`, or to its
    /// end. The same path gives the same states, whatever the level.
    fn run(&mut self, path: &[Segment], level: f64) -> Passage;
}

/// Levels and effort.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitPlan {
    levels: Vec<f64>,
    effort: u32,
    seed: u64,
}

/// One replication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitRun {
    /// Product of the stages' success rates.
    pub estimate: f64,
    /// How many trajectories reached each level; it ends with the first 0.
    pub reached: Vec<u32>,
    /// Trajectories run.
    pub trajectories: u64,
}

impl SplitPlan {
    /// `levels` rise strictly to the event itself; `effort` trajectories per stage.
    ///
    /// `None` without a level, with a level that does not rise or is not a number, or with no effort.
    pub fn new(levels: Vec<f64>, effort: u32, seed: u64) -> Option<Self> {
        let rising = levels.windows(2).all(|pair| pair[0] < pair[1]);
        let numbers = !levels.is_empty() && levels.iter().all(|level| !level.is_nan());
        (rising && numbers && effort > 0).then_some(Self { levels, effort, seed })
    }

    /// The levels, rising to the event.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// Runs replication number `replication`. Replications are independent of each other, and may be
    /// computed in any order and in parallel.
    pub fn replicate(&self, model: &mut impl Splittable, replication: u64) -> SplitRun {
        let mut run = SplitRun { estimate: 1.0, reached: Vec::new(), trajectories: 0 };
        let mut entrances: Vec<Vec<Segment>> = vec![Vec::new()];
        for (stage, level) in self.levels.iter().enumerate() {
            let key = [self.seed, replication, stage as u64];
            let paths = continuations(&entrances, self.effort, key);
            entrances.clear();
            for mut path in paths {
                run.trajectories += 1;
                if let Some(at) = model.run(&path, *level).reached {
                    // Where the next stage branches; its trajectories bring their own seeds.
                    path.push(Segment { from: at, seed: 0 });
                    entrances.push(path);
                }
            }
            let reached = entrances.len() as u32;
            run.reached.push(reached);
            run.estimate *= f64::from(reached) / f64::from(self.effort);
            if reached == 0 {
                break;
            }
        }
        run
    }
}

/// `effort` trajectories from the given entrances in turn, each with another seed.
///
/// In turn, not drawn: as even as can be. The first is drawn: where the effort is no multiple of the
/// entrances, those that serve once more would else be children of the same parents ever again, which
/// makes a bias.
fn continuations(entrances: &[Vec<Segment>], effort: u32, key: [u64; 3]) -> Vec<Vec<Segment>> {
    let word = key.into_iter().chain([u64::MAX]).fold(0, mix);
    // The remainder's bias is below 2^-32: there are no more entrances than effort.
    let first = (word % entrances.len().max(1) as u64) as usize;
    let starts = entrances.iter().cycle().skip(first).take(effort as usize).enumerate();
    starts
        .map(|(index, entrance)| {
            let seed = key.into_iter().chain([index as u64]).fold(0, mix);
            let mut path = entrance.clone();
            match path.last_mut() {
                Some(last) => last.seed = seed,
                None => path.push(Segment { from: 0, seed }),
            }
            path
        })
        .collect()
}

/// SplitMix64's finaliser (Steele, Lea, Flood, OOPSLA 2014) over a running key.
fn mix(key: u64, word: u64) -> u64 {
    let mut z = (key ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Levels for the event `importance >= goal`, from pilot stages: each is the importance that about
/// `share` of `effort` trajectories reached from the level before (Cérou and Guyader's adaptive
/// splitting, Stoch. Anal. Appl. 25, 2007). Use another seed for the estimate than for the pilot.
///
/// # Errors
/// A stage does not rise above its start: the effort is too small, or nothing random is left there, or
/// the event is impossible. So it is at once without effort, or with a `share` that is not inside 0..1.
pub fn choose_levels(
    model: &mut impl Splittable,
    goal: f64,
    effort: u32,
    share: f64,
    seed: u64,
) -> Result<Vec<f64>, Stuck> {
    if !(share > 0.0 && share < 1.0) || effort == 0 {
        return Err(Stuck { best: f64::NEG_INFINITY, paths: Vec::new() });
    }
    let mut levels: Vec<f64> = Vec::new();
    let mut entrances: Vec<Vec<Segment>> = vec![Vec::new()];
    loop {
        let stage = levels.len() as u64;
        let paths = continuations(&entrances, effort, [!seed, u64::MAX, stage]);
        let mut best: Vec<f64> =
            paths.iter().map(|path| model.run(path, goal).best.min(goal)).collect();
        best.sort_unstable_by(|left, right| right.total_cmp(left));
        let wanted = ((f64::from(effort) * share).ceil() as usize).clamp(1, best.len());
        // What every trajectory reaches is no level.
        let least = best[best.len() - 1];
        let below =
            levels.last().copied().unwrap_or(if least < goal { least } else { f64::NEG_INFINITY });
        // Where the importance has few values, the quantile may be the level below: go up from it.
        let level = best[..wanted].iter().rev().copied().find(|level| *level > below);
        let Some(level) = level else { return Err(Stuck { best: best[0], paths }) };
        levels.push(level);
        if level >= goal {
            return Ok(levels);
        }
        entrances = paths
            .into_iter()
            .filter_map(|mut path| {
                let at = model.run(&path, level).reached?;
                path.push(Segment { from: at, seed: 0 });
                Some(path)
            })
            .collect();
    }
}

/// A pilot stage none of whose trajectories rose above its start.
#[derive(Clone, Debug, PartialEq)]
pub struct Stuck {
    /// The largest importance of them; negative infinity where none had any.
    pub best: f64,
    /// The trajectories. Those that differ in their last seed alone branch from one state.
    pub paths: Vec<Vec<Segment>>,
}

/// The mean of independent replications.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SplitEstimate {
    /// The probability.
    pub estimate: f64,
    /// Lower end, above 0.
    pub low: f64,
    /// Upper end, cut at 1.
    pub high: f64,
    /// 1 - alpha, nearly: where a stage is passed by few trajectories, less.
    ///
    /// The interval is Student's of the logarithm of the mean, since a product of random rates lies further
    /// above its mean than below it. For the same reason the variance of so few products says little, and
    /// is small where their mean is. So it follows from the *sum* of the stages' relative deviations from
    /// their mean rates, x = Σ (r_k / r̄_k - 1), which is nearly normal: where x has the variance v over the
    /// replications, their products have the relative variance e^v - 1, and their mean that over their
    /// number, V. Deviations of one replication add up whatever ties its stages together.
    ///
    /// As of a lognormal mean, the logarithm lies V / 2 low, and how much is known no better than V is, which
    /// adds V² / 2 to its variance (Cox's method: Zhou and Gao, Statistics in Medicine 16, 1997).
    pub confidence: f64,
    /// Replications.
    pub replications: u64,
    /// Trajectories of all replications.
    pub trajectories: u64,
}

impl SplitEstimate {
    /// `None` below two replications, or if none of them reached the event: then nothing is known but
    /// that the effort was too small.
    pub fn from_runs(runs: &[SplitRun], confidence: f64) -> Option<Self> {
        let number = runs.len() as f64;
        let estimate = runs.iter().map(|run| run.estimate).sum::<f64>() / number;
        if runs.len() < 2 || estimate <= 0.0 || !(confidence > 0.0 && confidence < 1.0) {
            return None;
        }
        let t = t_quantile(f64::midpoint(1.0, confidence), number - 1.0);
        let variance = libm::expm1(variance_of_sums(runs)) / number;
        let half_width = t * (variance + variance * variance / 2.0).sqrt();
        Some(Self {
            estimate,
            low: estimate * libm::exp(variance / 2.0 - half_width),
            high: (estimate * libm::exp(variance / 2.0 + half_width)).min(1.0),
            confidence,
            replications: runs.len() as u64,
            trajectories: runs.iter().map(|run| run.trajectories).sum(),
        })
    }
}

/// The variance over the runs of each one's sum of its stages' relative deviations from the mean rates. A
/// stage that a run did not come to tells nothing.
fn variance_of_sums(runs: &[SplitRun]) -> f64 {
    let stages = runs.iter().map(|run| run.reached.len()).max().unwrap_or(0);
    let mean_of = |stage: usize| {
        let reached = runs.iter().filter_map(|run| run.reached.get(stage));
        let (sum, count) = reached.fold((0.0, 0), |(sum, n), r| (sum + f64::from(*r), n + 1));
        sum / f64::from(count)
    };
    let means: Vec<f64> = (0..stages).map(mean_of).collect();
    let sum_of = |run: &SplitRun| -> f64 {
        let deviation = |(reached, mean): (&u32, &f64)| f64::from(*reached) / mean - 1.0;
        run.reached.iter().zip(&means).map(deviation).sum()
    };
    let sums: Vec<f64> = runs.iter().map(sum_of).collect();
    let mean = sums.iter().sum::<f64>() / sums.len() as f64;
    let squares: f64 = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum();
    squares / (sums.len() as f64 - 1.0)
}
