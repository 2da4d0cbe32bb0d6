use reference_core::time::Span;

use super::*;

#[test]
fn elapsed_time_is_formatted_to_the_millisecond() {
    for (micros, expected) in [
        (0, "+0s"),
        (40_000, "+0.04s"),
        (111_951_569, "+1m 51.951s"),
        (3_734_862_265, "+1h 2m 14.862s"),
        (90_000_000_000, "+1d 1h 0m 0s"),
    ] {
        assert_eq!(format_elapsed(Span(micros)), expected);
    }
}

#[test]
fn invisible_characters_are_escaped_except_line_breaks() {
    for (text, expected) in [
        ("Zażółć\n二", "Zażółć\n二"),
        ("a\u{202e}b\u{2066}", r"a\u{202e}b\u{2066}"),
        ("a\u{61c}b\u{200f}\u{ad}", r"a\u{61c}b\u{200f}\u{ad}"),
        ("\u{1b}[31m\r", r"\u{1b}[31m\u{d}"),
    ] {
        assert_eq!(escape_invisible(text), expected);
    }
}

#[test]
fn a_path_is_quoted_as_one_shell_argument() {
    for (path, expected) in [
        ("scenarios/paid.yaml", "scenarios/paid.yaml"),
        ("two words.yaml", "'two words.yaml'"),
        ("it's $HOME", r"'it'\''s $HOME'"),
        ("-x.yaml", "'./-x.yaml'"),
    ] {
        assert_eq!(shell_quote(path), expected);
    }
}

/// A scenario whose texts contain markup and a direction mark.
const HOSTILE: &str = r#"title: "<img src=x onerror=alert(1)> \u202egnp"
steps:
  - endpoint: shop
  - open: { charge: c1, asset: BTC, amount: 49.90 EUR, description: "</script><b>" }
  - pay: c1
  - mine: { asset: BTC, blocks: 4 }
"#;

/// Returns the page of a scenario, and the details of its marks.
fn page_of(source: &str, fault: Option<&'static DemoFault>) -> (String, Vec<serde_json::Value>) {
    let script = Script::parse("a b.yaml", source).unwrap();
    let page = page(&PageInput { script: &script, fault, violation: None, failure: None });
    let (_, marks) = page.split_once(r#"id="details">"#).unwrap();
    let marks = serde_json::from_str(marks.split_once("</script>").unwrap().0).unwrap();
    (page, marks)
}

#[test]
fn a_transfer_is_one_mark_in_the_step_that_sent_it() {
    let (page, marks) = page_of(HOSTILE, None);
    let transfers: Vec<_> = marks.iter().filter(|mark| mark.to_string().contains("at first")).collect();
    assert_eq!(transfers.len(), 1, "{marks:#?}");
    let (details, step) = (transfers[0]["details"].to_string(), &transfers[0]["step"]);
    assert!(details.contains("0 at first") && details.contains("2 after"), "{details}");
    assert_eq!((step, &transfers[0]["objects"][0]), (&3.into(), &"c1".into()));
    // Only the row of a violation has a heading that can be focused.
    assert!(page.contains("<b>pass</b>") && !page.contains("tabindex=\"-1\"><th"), "{page}");
    assert!(page.contains("chargeproof serve --scenario &#39;a b.yaml&#39;"), "{page}");
}

#[test]
fn text_of_the_scenario_is_escaped_in_html() {
    let (page, marks) = page_of(HOSTILE, None);
    assert!(marks.iter().any(|mark| mark.to_string().contains("</script><b>")), "{marks:#?}");
    for markup in ["<img", "</script><b>"] {
        assert!(!page.contains(markup), "the page has {markup}");
    }
    // The scenario is offered unchanged; elsewhere invisible characters are escaped.
    let (head, _) = page.split_once("<textarea").unwrap();
    assert!(head.contains(r"\u{202e}gnp") && !page.contains('\u{202e}'), "{head}");
}

#[test]
fn a_violation_fails_the_page_and_has_its_own_row() {
    let fault = DemoFault::ALL.iter().find(|fault| fault.name == "one-confirmation-more");
    let (page, _) = page_of(HOSTILE, fault);
    assert!(page.contains("<b>fail</b>") && page.contains("id=\"here-0\""), "{page}");
    assert!(page.contains("--demo-fault one-confirmation-more"), "{page}");
}

#[test]
fn a_random_world_is_offered_as_a_file_with_the_same_page() {
    let script = crate::workload::draw(5).script;
    let picture = PageInput { script: &script, fault: None, violation: None, failure: None };
    let first_page = page(&picture);
    assert_eq!(first_page, page(&picture));
    let (_, text) = first_page.split_once("spellcheck=\"false\">\n").unwrap();
    let text = text.split_once("</textarea>").unwrap().0;
    let text = text.replace("&#34;", "\"").replace("&#39;", "'").replace("&#60;", "<").replace("&#62;", ">");
    let offered = Script::parse("seed-5.yaml", &text.replace("&#38;", "&")).unwrap();
    let second_page = page(&PageInput { script: &offered, ..picture });
    let rows = |page: &str| page.split_once("<tbody>").unwrap().1.to_owned();
    assert_eq!(rows(&second_page), rows(&first_page));
}
