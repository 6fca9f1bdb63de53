//! `Stream`, its level and its alarm.

use super::Framed;
use super::numbers::{Reader, Writer};
use super::parts::{
    read_alpha, read_ranks, read_scheme, read_spec, write_alpha, write_ranks, write_scheme, write_spec,
};
use crate::stream::{Counted, MOST_POINTS, Names, Trace, Waiting};
use crate::{
    AdaptiveLevel, Alarm, Calibration, Evidence, Masked, Result, Row, ScoreSpec, SortedScores, Stream,
    StreamOptions, TracePoint,
};

impl Framed for AdaptiveLevel {
    const WHAT: &'static str = "those of a level";
    const KIND: u32 = 8;

    fn write(&self, to: &mut Writer) {
        write_alpha(to, self.target);
        to.f64(self.step);
        to.option(self.decay, Writer::f64);
        to.f64(self.level);
        to.u64(self.rows);
        to.u64(self.misses);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let begun = Self::new(read_alpha(from)?, from.f64()?, from.option(Reader::f64)?)?;
        let (level, rows, misses) = (from.f64()?, from.u64()?, from.u64()?);
        match level.is_finite() && misses <= rows {
            true => Ok(Self { level, rows, misses, ..begun }),
            false => Err(from.fault("their counts do not fit together")),
        }
    }
}

impl Framed for Alarm {
    const WHAT: &'static str = "those of an alarm";
    const KIND: u32 = 9;

    fn write(&self, to: &mut Writer) {
        to.list(&self.seen, |to, seen| {
            to.list(&seen.in_order(), |to, (score, count)| {
                to.f64(*score);
                to.u64(*count);
            });
        });
        to.f64(self.jump);
        to.u64(self.seed);
        to.u64(self.updates);
        self.shares.iter().for_each(|share| to.f64(*share));
        to.f64(self.log_capital);
        to.f64(self.highest);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let seen = from.list(|from| {
            let mut seen = Counted::default();
            let mut total = 0_u64;
            for (score, count) in from.list(|from| Ok((from.f64()?, from.u64()?)))? {
                let sum = total.checked_add(count).filter(|_| count > 0 && !score.is_nan());
                total = sum.ok_or(from.fault("a score is not a number, or none"))?;
                seen.insert_many(score, count);
            }
            Ok(seen)
        })?;
        let begun = Self::by_group([], from.f64()?, from.u64()?)?;
        let updates = from.u64()?;
        let shares = [from.f64()?, from.f64()?, from.f64()?];
        let (log_capital, highest) = (from.f64()?, from.f64()?);
        let held = shares.iter().all(|share| (0.0..=1.0).contains(share));
        match held && log_capital.is_finite() && highest >= log_capital {
            true => Ok(Self { seen, updates, shares, log_capital, highest, ..begun }),
            false => Err(from.fault("their capital is none there can be")),
        }
    }
}

fn write_options(to: &mut Writer, options: StreamOptions) {
    to.f64(options.step);
    to.option(options.decay, Writer::f64);
    to.option(options.window, Writer::u64);
    write_alpha(to, options.delta);
    to.u64(options.seed);
}

fn read_options(from: &mut Reader<'_>) -> Result<StreamOptions> {
    Ok(StreamOptions {
        step: from.f64()?,
        decay: from.option(Reader::f64)?,
        window: from.option(Reader::u64)?,
        delta: read_alpha(from)?,
        seed: from.u64()?,
    })
}

fn write_waiting(to: &mut Writer, (place, waiting): &(&u64, &Waiting)) {
    to.u64(**place);
    to.text(&waiting.id);
    to.f64(waiting.level);
    to.option(waiting.group, Writer::u32);
    to.f64s(&waiting.row);
}

fn read_waiting(from: &mut Reader<'_>) -> Result<(u64, Waiting)> {
    let (place, id, level) = (from.u64()?, from.text()?.to_owned(), from.f64()?);
    let (group, row) = (from.option(Reader::u32)?, from.list(Reader::f64)?);
    Row::new(&row)?;
    Ok((place, Waiting { id, level, group, row: row.into() }))
}

impl Framed for Stream<ScoreSpec> {
    const WHAT: &'static str = "those of a stream";
    const KIND: u32 = 7;

    fn write(&self, to: &mut Writer) {
        let calibration = self.calibration();
        write_spec(to, *calibration.score());
        to.u64(calibration.classes() as u64);
        to.u8(u8::from(calibration.masked() == Masked::Never));
        write_scheme(to, calibration.scheme());
        write_ranks(to, calibration.ranks());
        to.list(calibration.groups(), |to, scores| to.scores(scores.as_slice()));
        write_options(to, self.options);
        self.level.write(to);
        self.alarm.write(to);
        to.u64(self.stretch);
        to.option(self.raised_at, Writer::u64);
        to.u64(self.predicted);
        to.u64(self.forgotten);
        to.list(&Vec::from_iter(&self.hits), |to, hit| to.u8(u8::from(**hit)));
        to.list(&Vec::from_iter(&self.sizes), |to, size| to.u32(**size));
        // Most of a stream that waits: memory for it is asked for once.
        to.0.reserve(
            self.waiting.values().map(|waiting| 8 * waiting.row.len() + waiting.id.len() + 64).sum(),
        );
        to.list(&Vec::from_iter(&self.waiting), write_waiting);
        to.list(&Vec::from_iter(self.labelled.iter()), |to, id| to.text(id));
        to.u64(self.trace.every);
        to.list(&self.trace.points, |to, point| {
            to.u64(point.labelled);
            [point.coverage, point.size, point.level, point.log_capital]
                .iter()
                .for_each(|number| to.f64(*number));
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let (score, classes) = (read_spec(from)?, from.usize()?);
        let masked = from.choice(&[Masked::Allowed, Masked::Never])?;
        let (scheme, ranks) = (read_scheme(from)?, read_ranks(from)?);
        let groups = from.list(|from| SortedScores::of_any(from.scores()?))?;
        let calibration = Calibration::from_evidence(score, classes, scheme, Evidence::Groups(groups))?;
        let calibration = match ranks {
            Some(ranks) => calibration.with_masked(masked).with_ranks(ranks)?,
            None => calibration.with_masked(masked),
        };
        let options = read_options(from)?;
        let (level, alarm) = (AdaptiveLevel::read(from)?, Alarm::read(from)?);
        let begun = Self::new(calibration, level.target(), options)?;
        let (stretch, raised_at) = (from.u64()?, from.option(Reader::u64)?);
        let (predicted, forgotten) = (from.u64()?, from.u64()?);
        let hits = from.list(|from| from.choice(&[false, true]))?.into();
        let sizes = from.list(Reader::u32)?.into();
        let waiting = from.list(read_waiting)?;
        let mut labelled = Names::default();
        from.list(|from| from.text().map(|name| labelled.push(name)))?;
        let every = from.u64()?;
        let points = from.list(|from| {
            let (labelled, coverage, size) = (from.u64()?, from.f64()?, from.f64()?);
            Ok(TracePoint { labelled, coverage, size, level: from.f64()?, log_capital: from.f64()? })
        })?;
        let fits = (level.step, level.decay) == (options.step, options.decay)
            && alarm.seen.len() == begun.calibration().groups().len()
            && waiting.iter().all(|(place, waiting)| waiting.row.len() == classes && *place < predicted)
            && every.is_power_of_two()
            && points.len() <= MOST_POINTS;
        if !fits {
            return Err(from.fault("their counts do not fit together"));
        }
        let (waiting, trace) = (waiting.into_iter().collect(), Trace { every, points });
        let read = Self {
            level,
            alarm,
            stretch,
            raised_at,
            predicted,
            forgotten,
            hits,
            sizes,
            waiting,
            labelled,
            trace,
            ..begun
        };
        Ok(read.derived())
    }
}
