//! Flows of kind loop: a plant at one node, its controller at another, samples and commands as datagrams between.

use acklab_control::{
    Actuation, ControllerPeer, ControllerSetup, Driven, Integration, Missing, PidGains, PlantPeer,
    PlantSetup, SquareWave, StateSpace, TransferFunction,
};

use acklab_core::packet::Addr;
use acklab_core::time::Span;

use super::reader::{Field, Fields, Mistake};

/// A control loop.
#[derive(Clone, Debug)]
pub(crate) struct ControlLoop {
    plant: StateSpace,
    gains: PidGains,
    pub(crate) period: Span,
    actuation: Actuation,
    driven: Driven,
    missing: Missing,
    reference: SquareWave,
}

impl ControlLoop {
    pub(super) fn read(table: &mut Fields<'_>) -> Result<Self, Mistake> {
        let plant = table
            .take("plant")
            .map_or_else(|| Ok(TransferFunction::dc_motor()), |field| plant(&field))?;
        let word = Field::typed;
        Ok(Self {
            plant: plant.to_state_space(),
            gains: table
                .take("pid")
                .map_or_else(|| Ok(PidGains::default()), |field| gains(&field))?,
            period: table.take("period").map_or(Ok(PERIOD), |field| field.time_above_zero())?,
            actuation: table
                .take("actuation")
                .map_or(Ok(Actuation::default()), |field| word(&field))?,
            driven: table.take("driven").map_or(Ok(Driven::default()), |field| field.typed())?,
            missing: table.take("missing").map_or(Ok(Missing::default()), |field| field.typed())?,
            reference: table
                .take("reference")
                .map_or_else(|| Ok(SquareWave::default()), |field| reference(&field))?,
        })
    }

    /// What decides how much the loop bears: plant, controller, sampling period.
    pub(crate) fn model(&self) -> (&StateSpace, &PidGains, Span) {
        (&self.plant, &self.gains, self.period)
    }

    /// Both ends, the plant at `plant`.
    pub(crate) fn peers(&self, plant: Addr, controller: Addr) -> (PlantPeer, ControllerPeer) {
        let plant_setup = PlantSetup {
            period: self.period,
            actuation: self.actuation,
            missing: self.missing,
            reference: self.reference,
            ..PlantSetup::new(self.plant.clone(), plant, controller)
        };
        let controller_setup = ControllerSetup {
            gains: self.gains,
            period: self.period,
            driven: self.driven,
            missing: self.missing,
            reference: self.reference,
            ..ControllerSetup::new(controller, plant)
        };
        (
            PlantPeer::new(plant_setup).expect("a transfer function has one input and one output"),
            ControllerPeer::new(controller_setup).expect("the period is longer than zero"),
        )
    }
}

/// A transfer function by its coefficients, the highest power of s first.
fn plant(field: &Field<'_>) -> Result<TransferFunction, Mistake> {
    let mut table = field.fields("the plant")?;
    let mut list = |key, example: &str| {
        let items = table.need(key, example)?.items()?;
        items.iter().map(|item| item.number(-1e12, 1e12)).collect::<Result<Vec<_>, _>>()
    };
    let numerator = list("numerator", "numerator = [36.3]")?;
    let denominator = list("denominator", "denominator = [1, 36.17, 0]")?;
    table.finish()?;
    TransferFunction::new(&numerator, &denominator).map_err(|error| field.refuse(error))
}

fn gains(field: &Field<'_>) -> Result<PidGains, Mistake> {
    let mut table = field.fields("the controller")?;
    let mut gain = |key| table.take(key).map_or(Ok(0.0), |field| field.number(-1e12, 1e12));
    let (kp, ki, kd) = (gain("kp")?, gain("ki")?, gain("kd")?);
    let filter = table.take("filter").map_or(Ok(Span::ZERO), |field| field.time())?;
    let mut gains = PidGains::pid(kp, ki, kd, filter);
    if let Some(field) = table.take("integration") {
        gains.integration = field.typed::<Integration>()?;
    }
    if let Some(field) = table.take("limit") {
        gains.limit = field.number(1e-12, acklab_control::pid::COMMAND_CAP)?;
    }
    table.finish()?;
    Ok(gains)
}

fn reference(field: &Field<'_>) -> Result<SquareWave, Mistake> {
    let mut table = field.fields("the reference")?;
    let first = table.need("first", "first = 1.0")?.number(-1e12, 1e12)?;
    let second = table.take("second").map_or(Ok(first), |field| field.number(-1e12, 1e12))?;
    let period = table.take("period").map_or(Ok(Span::ZERO), |field| field.time())?;
    table.finish()?;
    Ok(SquareWave { first, second, period })
}

/// That of the ANCE article.
const PERIOD: Span = Span::from_millis(14);
