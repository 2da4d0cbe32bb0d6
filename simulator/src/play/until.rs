//! The step `until`: waits for a time, which may depend on an event, an expiry or an attempt.

use reference_core::{
    event::EventType,
    time::{Span, Timestamp},
};

use super::{Player, failure::StepError};
use crate::script::{
    At, Kind, SourceSpan,
    step::Until,
    value::{EventTypeName, Name, Offset},
};

/// The time within which `until` expects an event, unless the step has `within`.
const EVENT_WITHIN: Span = Span::hours(2);

impl Player<'_> {
    pub(super) fn wait_until(&mut self, until: &Until) -> Result<(), StepError> {
        let offset = until.offset.as_ref().map_or(Offset::After(Span(0)), |offset| offset.value);
        if let Some(event) = &until.event {
            let moment = self.wait_for_event(event, until)?;
            return self.advance_to_future(offset.from(moment), event.span);
        }
        let (moment, span) = if let Some(at) = &until.at {
            (at.value.0, at.span)
        } else if let Some(name) = &until.expiry {
            let charge = self.named_object(name)?;
            let charge = self.read_object(self.book_of(&charge), &format!("/v1/charges/{}", charge.id))?;
            (self.parse_time(&self.string_at(&charge, "/data/expires_at")?)?, name.span)
        } else if let Some(name) = &until.attempt {
            (self.next_attempt(name)?, name.span)
        } else {
            return Err(StepError::impossible(
                self.step_span,
                "`until` needs a time",
                "add `at` or `expiry`",
            ));
        };
        self.advance_to_future(offset.from(moment), span)
    }

    /// Returns the time of the next attempt of a delivery, or at an endpoint.
    fn next_attempt(&self, name: &At<Name>) -> Result<Timestamp, StepError> {
        let object = self.named_object(name)?;
        let mut next = None;
        for (delivery, (endpoint, at)) in &self.tally.next_at {
            let id = if object.kind == Kind::Endpoint { endpoint } else { delivery };
            if let Some(at) = at.filter(|_| *id == object.id) {
                // Attempts that were planned before the endpoint was disabled are in the past.
                if at >= self.now {
                    next = next.map_or(Some(at), |next: Timestamp| Some(next.min(at)));
                }
            }
        }
        next.ok_or_else(|| StepError::impossible(name.span, "no attempt is planned", "has no next attempt"))
    }

    /// Advances the clock to a time, which must not be in the past.
    fn advance_to_future(&mut self, moment: Timestamp, span: SourceSpan) -> Result<(), StepError> {
        if moment < self.now {
            let label = format!("it was {moment}, and the clock shows {}", self.now);
            return Err(StepError::impossible(span, "this time has passed", label));
        }
        self.advance_to(moment)
    }

    /// Advances the clock to the end of the second in which the event occurs, counted from the start of the
    /// wait, so that the scenario continues at a round time. Returns that time.
    fn wait_for_event(&mut self, event: &At<EventTypeName>, until: &Until) -> Result<Timestamp, StepError> {
        let subject = match &until.of {
            Some(name) => Some(self.named_object(name)?.id),
            None => None,
        };
        let within = until.within.map_or(EVENT_WITHIN, |within| within.0);
        let start = self.now;
        let latest = start.plus(within);
        let before = self.count_events(subject.as_deref(), event.0);
        while self.count_events(subject.as_deref(), event.0) == before {
            if self.now >= latest {
                let title = format!("no {} occurred", event.0.as_str());
                let actual = format!("none within {within}");
                return Err(StepError::unmet_expectation(
                    event.span,
                    title,
                    "did not occur",
                    event.0.as_str().to_owned(),
                    actual,
                ));
            }
            let event_at = self.advance_to_next_event(latest)?;
            let whole_second = start.plus(Span::secs(event_at.since(start).secs_rounded_up().max(1)));
            self.advance_to(whole_second.min(latest))?;
        }
        Ok(self.now)
    }

    fn count_events(&self, subject: Option<&str>, kind: EventType) -> usize {
        let count = |types: &Vec<EventType>| types.iter().filter(|known| **known == kind).count();
        match subject {
            Some(code) => self.tally.events.get(code).map_or(0, count),
            None => self.tally.events.values().map(count).sum(),
        }
    }

    fn parse_time(&self, text: &str) -> Result<Timestamp, StepError> {
        Timestamp::parse(text)
            .ok_or_else(|| StepError::stage_failure(self.step_span, format!("`{text}` is not a time")))
    }
}
