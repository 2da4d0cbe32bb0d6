//! The HTML report in a browser: accessible, and no wider than its window, in both colour schemes.

use testkit::browser::{Browser, Viewport, axe};

use crate::report::{html, samples};

/// Opens the details of verdicts and the sentences of chapters, which are closed at first.
const OPEN_ALL: &str = "document.querySelectorAll('details').forEach((element) => element.open = true)";

#[tokio::test]
async fn an_html_report_fits_every_window_and_is_accessible_in_both_colour_schemes() {
    let Some(browser) = Browser::start().await else { return };
    let directory = tempfile::tempdir().expect("a directory");
    for (name, outcome) in [("known", samples::known()), ("unreachable", samples::unreachable())] {
        let file = directory.path().join(format!("{name}.html"));
        std::fs::write(&file, html(&outcome)).expect("a report can be written");
        let page = browser.page().await;
        page.open(&format!("file://{}", file.display())).await;
        page.eval(OPEN_ALL).await;
        for viewport in Viewport::ALL {
            page.set_viewport(viewport).await;
            page.assert_fits().await;
            // One width per colour scheme, because the accessibility rules are slow.
            if [Viewport::DESKTOP, Viewport::PHONE_DARK].contains(&viewport) {
                axe::assert_accessible(&page, &format!("{name} {}", viewport.name)).await;
            }
        }
        assert_eq!(page.errors(), Vec::<String>::new(), "{name}");
    }
}
