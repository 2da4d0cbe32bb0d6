//! Chapter "paging": what each page says of itself, and how pages fit together.

use std::collections::BTreeSet;

use super::Check;
use super::evidence::{
    Sheet, list_moved, long, moved, no_readable_list, sheets, too_few_records, unanswered,
};
use crate::probes::Group;
use crate::reading::{Page, identity, text_at, utc};
use crate::recording::{Exchange, List, PageAsk, Purpose, Recording};
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];
const PER_PAGE_DEFAULT: u64 = 25;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "lists.served", needs: NEEDS, judge: served },
    Check { id: "paging.envelope", needs: NEEDS, judge: envelope },
    Check { id: "paging.meta", needs: NEEDS, judge: meta },
    Check { id: "paging.default_size", needs: NEEDS, judge: default_size },
    Check { id: "paging.per_page", needs: NEEDS, judge: per_page },
    Check { id: "paging.current_page", needs: NEEDS, judge: current_page },
    Check { id: "paging.length", needs: NEEDS, judge: length },
    Check { id: "paging.last_page", needs: NEEDS, judge: last_page },
    Check { id: "paging.joined", needs: NEEDS, judge: joined },
    Check { id: "paging.newest_first", needs: NEEDS, judge: newest_first },
    Check { id: "paging.newest_first_others", needs: NEEDS, judge: newest_first_others },
    Check { id: "paging.out_of_range", needs: NEEDS, judge: out_of_range },
];

fn served(recording: &Recording) -> Judged {
    for list in List::ALL {
        let plain = PageAsk { list, filters: vec![], page: None, per_page: None, link: None };
        let default = |it: &&Exchange| matches!(&it.purpose, Purpose::Page(ask) if *ask == plain);
        let asked: Vec<_> = recording.exchanges.iter().filter(default).collect();
        let clear = |it: &&&Exchange| it.status().is_some_and(|status| !matches!(status, 429 | 502..=504));
        if let Some(it) = asked.iter().filter(clear).find(|it| it.status() != Some(200)) {
            return Err(Halt::broken(it.number, "200", it.summary()));
        }
        if !asked.iter().any(|it| it.status() == Some(200)) {
            return Err(unanswered(asked.last().copied(), list.path()));
        }
    }
    Ok(Held::Plainly)
}

/// Judges every page that `applies`; the statement holds if all of these do.
fn each<'a>(
    sheets: &'a [Sheet<'a>],
    mut wrong: impl FnMut(&Sheet<'a>) -> Option<Result<(), (String, String)>>,
) -> Judged {
    let mut judged = 0;
    for sheet in sheets {
        match wrong(sheet) {
            None => {}
            Some(Ok(())) => judged += 1,
            Some(Err((expected, actual))) => return Err(Halt::broken(sheet.number(), expected, actual)),
        }
    }
    if judged == 0 { Err(no_readable_list()) } else { Ok(Held::Plainly) }
}

fn equal(name: &str, expected: u64, actual: u64) -> Result<(), (String, String)> {
    if expected == actual { Ok(()) } else { Err((format!("{name} {expected}"), format!("{name} {actual}"))) }
}

fn envelope(recording: &Recording) -> Judged {
    each(&sheets(recording), |sheet| {
        let page = &sheet.page;
        let object = page.object();
        let is_object = |name| object.and_then(|it| it.get(name)).is_some_and(|it| it.is_object());
        let missing = [
            ("an object", object.is_some()),
            ("the array `data`", page.rows().is_some()),
            ("the object `links`", is_object("links")),
            ("the object `meta`", is_object("meta")),
        ];
        let wrong = missing.iter().find(|(_, there)| !there);
        Some(wrong.map_or(Ok(()), |(what, _)| Err(((*what).to_owned(), sheet.exchange.summary()))))
    })
}

fn meta(recording: &Recording) -> Judged {
    each(&sheets(recording), |sheet| {
        let meta = sheet.page.object()?.get("meta")?.as_object()?;
        let names = ["current_page", "last_page", "per_page", "total"];
        let wrong = names.into_iter().find(|name| sheet.page.meta(name).is_none());
        Some(wrong.map_or(Ok(()), |name| {
            let told = meta.get(name).map_or("missing".to_owned(), ToString::to_string);
            Err((format!("meta.{name} as an integer"), format!("meta.{name} {told}")))
        }))
    })
}

fn default_size(recording: &Recording) -> Judged {
    each(&sheets(recording), |sheet| {
        let by_default = sheet.is_plain() && sheet.ask.per_page.is_none();
        by_default.then_some(())?;
        Some(equal("meta.per_page", PER_PAGE_DEFAULT, sheet.page.meta("per_page")?))
    })
}

fn per_page(recording: &Recording) -> Judged {
    each(&sheets(recording), |sheet| {
        Some(equal("meta.per_page", sheet.ask.per_page?, sheet.page.meta("per_page")?))
    })
}

fn current_page(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let second = sheets.iter().any(|sheet| sheet.ask.page.is_some_and(|page| page > 1));
    let judged = each(&sheets, |sheet| {
        sheet.ask.link.is_none().then_some(())?;
        Some(equal("meta.current_page", sheet.ask.page.unwrap_or(1), sheet.page.meta("current_page")?))
    })?;
    if second { Ok(judged) } else { Err(too_few_records()) }
}

/// Judged by the numbers of the page itself, so that nothing created meanwhile disturbs.
fn length(recording: &Recording) -> Judged {
    let mut full = false;
    let judged = each(&sheets(recording), |sheet| {
        sheet.ask.filters.is_empty().then_some(())?;
        let numbers = sheet.numbers()?;
        full |= numbers.len() > 0;
        Some(equal("rows:", numbers.len(), sheet.page.rows()?.len() as u64))
    })?;
    if full { Ok(judged) } else { Err(too_few_records()) }
}

fn last_page(recording: &Recording) -> Judged {
    let (mut even, mut uneven) = (false, false);
    let judged = each(&sheets(recording), |sheet| {
        sheet.ask.filters.is_empty().then_some(())?;
        let numbers = sheet.numbers()?;
        let told = sheet.page.meta("last_page")?;
        if numbers.total == 0 {
            // An empty list has no page or one empty page; both are honest.
            return Some(if told <= 1 { Ok(()) } else { equal("meta.last_page", 1, told) });
        }
        even |= numbers.total % numbers.size == 0;
        uneven |= numbers.total % numbers.size != 0;
        Some(equal("meta.last_page", numbers.pages(), told))
    })?;
    if even && uneven { Ok(judged) } else { Err(too_few_records()) }
}

fn joined(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let (mut lists, mut disturbed) = (Vec::new(), false);
    for second in sheets.iter().filter(|it| it.is_plain() && it.ask.page == Some(2)) {
        let (list, mode) = (second.ask.list, second.mode);
        let first = sheets.iter().find(|it| {
            let same = (it.mode, it.ask.list, it.ask.per_page) == (mode, list, second.ask.per_page);
            same && it.is_plain() && it.ask.page == Some(1)
        });
        let (Some(first), Some(long)) = (first, long(&sheets, list, mode)) else { continue };
        if moved(&sheets, list, mode) {
            disturbed = true;
            continue;
        }
        let ids = |rows: &[serde_json::Value]| rows.iter().map(identity).collect::<Vec<_>>();
        let joined = ids(&[first.rows(), second.rows()].concat());
        let whole = ids(long.rows());
        let shared = joined.len().min(whole.len());
        if joined[..shared] != whole[..shared] {
            let at = (0..shared).find(|at| joined[*at] != whole[*at]).unwrap_or_default();
            return Err(Halt::broken(
                second.number(),
                format!("record {} of the long page ({}), exchange {}", at + 1, whole[at], long.number()),
                format!("{} in its place", joined[at]),
            ));
        }
        let distinct: BTreeSet<_> = joined.iter().collect();
        if distinct.len() != joined.len() {
            return Err(Halt::broken(second.number(), "every record once", "a record stands on two pages"));
        }
        if !lists.contains(&list.word()) {
            lists.push(list.word());
        }
    }
    match (lists.is_empty(), disturbed) {
        (false, _) => Ok(Held::With(format!("judged on {}", lists.join(", ")))),
        (true, true) => Err(list_moved()),
        (true, false) => Err(too_few_records()),
    }
}

/// The first pair of rows in which the later one is the newer.
fn disorder(sheet: &Sheet<'_>) -> Option<(String, String)> {
    let times: Vec<_> = sheet.rows().iter().map(|row| text_at(row, &["created_at"])).collect();
    times.windows(2).find_map(|pair| {
        let (earlier_row, later_row) = (pair[0]?, pair[1]?);
        let newer_below = utc(earlier_row).ok()? < utc(later_row).ok()?;
        newer_below.then(|| (earlier_row.to_owned(), later_row.to_owned()))
    })
}

fn ordered(recording: &Recording, wanted: impl Fn(List) -> bool, none: Halt) -> Judged {
    let sheets = sheets(recording);
    let mut judged = false;
    for sheet in sheets.iter().filter(|it| wanted(it.ask.list)) {
        if let Some((above, below)) = disorder(sheet) {
            return Err(Halt::broken(
                sheet.number(),
                "the newest record first",
                format!("{above} above {below}"),
            ));
        }
        let dated = sheet.rows().iter().filter_map(|row| text_at(row, &["created_at"]));
        judged |= dated.filter(|text| utc(text).is_ok()).count() > 1;
    }
    if judged { Ok(Held::Plainly) } else { Err(none) }
}

fn newest_first(recording: &Recording) -> Judged {
    ordered(recording, |list| list == List::Events, too_few_records())
}

fn newest_first_others(recording: &Recording) -> Judged {
    let rows = |it: &Sheet<'_>| it.ask.list != List::Events && it.rows().len() > 1;
    let none = if sheets(recording).iter().any(rows) {
        Halt::Inapplicable("charges and invoices do not tell when they were created".into())
    } else {
        too_few_records()
    };
    ordered(recording, |list| list != List::Events, none)
}

fn out_of_range(recording: &Recording) -> Judged {
    let asked =
        recording.last(|it| matches!(&it.purpose, Purpose::Page(PageAsk { per_page: Some(101), .. })));
    let Some(exchange) = asked.filter(|it| it.answer().is_some()) else {
        return Err(unanswered(asked, "per_page=101"));
    };
    Ok(Held::Seen(match Page::of(exchange).and_then(|page| page.meta("per_page")) {
        Some(size) => format!("200 with pages of {size}"),
        None => exchange.summary(),
    }))
}
