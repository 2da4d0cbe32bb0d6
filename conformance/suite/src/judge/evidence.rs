//! What the recording holds for a chapter: the readable pages, and what to say when there are none.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::plan::Mode;
use crate::reading::Page;
use crate::recording::{Caller, Exchange, List, PageAsk, Purpose, Recording};
use crate::verdict::Halt;

/// The largest size the specification allows; pages of this size are the long ones.
pub(super) const PER_PAGE_MAX: u64 = 100;

/// A page that was answered with 200 and JSON.
pub(super) struct Sheet<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) mode: Mode,
    pub(super) ask: &'a PageAsk,
    pub(super) page: Page,
}

/// The numbers a page gives of itself.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) current: u64,
    pub(super) size: u64,
    pub(super) total: u64,
}

impl Numbers {
    pub(super) fn pages(self) -> u64 {
        self.total.div_ceil(self.size)
    }

    pub(super) fn len(self) -> u64 {
        self.total.saturating_sub((self.current - 1).saturating_mul(self.size)).min(self.size)
    }
}

impl Sheet<'_> {
    pub(super) fn number(&self) -> u32 {
        self.exchange.number
    }

    pub(super) fn rows(&self) -> &[Value] {
        self.page.rows().map_or(&[], Vec::as_slice)
    }

    /// `None` where a number is missing or makes no sense: another statement tells of that.
    pub(super) fn numbers(&self) -> Option<Numbers> {
        let [current, size, total] = ["current_page", "per_page", "total"].map(|name| self.page.meta(name));
        let numbers = Numbers { current: current?, size: size?, total: total? };
        let is_asked = self.ask.page.is_none_or(|page| page == numbers.current);
        (numbers.current > 0 && numbers.size > 0 && is_asked).then_some(numbers)
    }

    /// Asked for by page and size, and by nothing else.
    pub(super) fn is_plain(&self) -> bool {
        self.ask.filters.is_empty() && self.ask.link.is_none()
    }
}

/// Every readable page of a size that the specification allows.
pub(super) fn sheets(recording: &Recording) -> Vec<Sheet<'_>> {
    recording.exchanges.iter().filter_map(sheet).collect()
}

fn sheet(exchange: &Exchange) -> Option<Sheet<'_>> {
    let (Purpose::Page(ask), Caller::Own(mode)) = (&exchange.purpose, exchange.caller) else { return None };
    let allowed = ask.per_page.is_none_or(|size| (1..=PER_PAGE_MAX).contains(&size));
    let page = Page::of(exchange).filter(|_| allowed)?;
    Some(Sheet { exchange, mode, ask, page })
}

/// The long page of a list in a mode.
pub(super) fn long<'s, 'a>(sheets: &'s [Sheet<'a>], list: List, mode: Mode) -> Option<&'s Sheet<'a>> {
    sheets.iter().rev().find(|it| {
        it.is_plain() && it.ask.list == list && it.mode == mode && it.ask.per_page == Some(PER_PAGE_MAX)
    })
}

/// Whether a list grew or shrank while it was read. Then pages cannot be compared with each other.
pub(super) fn moved(sheets: &[Sheet<'_>], list: List, mode: Mode) -> bool {
    let of_list = |it: &&Sheet<'_>| it.is_plain() && it.ask.list == list && it.mode == mode;
    let totals: BTreeSet<_> = sheets.iter().filter(of_list).filter_map(|it| it.page.meta("total")).collect();
    totals.len() > 1
}

/// The page whose link led here.
pub(super) fn origin<'s, 'a>(sheets: &'s [Sheet<'a>], sheet: &Sheet<'_>) -> Option<&'s Sheet<'a>> {
    let link = sheet.ask.link.as_ref()?;
    sheets.iter().find(|it| it.number() == link.of)
}

pub(super) fn no_readable_list() -> Halt {
    Halt::unjudged(
        "no list was answered in a readable way",
        "see lists.served, answers.json and paging.envelope",
    )
}

pub(super) fn too_few_records() -> Halt {
    Halt::unjudged(
        "no list has 3 or more records in either mode",
        "open and cancel a few charges with the test key's account, then check again",
    )
}

pub(super) fn list_moved() -> Halt {
    Halt::unjudged("records were created while the list was read", "check again while nothing is created")
}

/// Where an exchange that was needed is missing or was not answered.
pub(super) fn unanswered(exchange: Option<&Exchange>, what: &str) -> Halt {
    let again = "check again; if it stays so, see the recording";
    match exchange {
        None => Halt::unjudged(format!("{what} was not asked for"), again),
        Some(it) => Halt::unjudged(format!("{what}: {} (exchange {})", it.summary(), it.number), again),
    }
}
