"""Every page of the built book in light and dark, on a wide and a narrow screen."""

from browser.driver import SCREENS, SETTLED

ALL, WHAT_THEME_AND_WIDTH_CHANGE = None, ["color-contrast", "scrollable-region-focusable"]
LOOKS = [
    ("light", "wide", ALL),
    ("dark", "wide", WHAT_THEME_AND_WIDTH_CHANGE),
    ("dark", "phone", ALL),
    ("light", "phone", WHAT_THEME_AND_WIDTH_CHANGE),
]


def test_every_page_is_quiet_whole_and_accessible(open_book, pages, axe, subtests):
    """With everything unfolded, in four looks. Console and requests are watched by `open_page`."""
    for name in pages:
        page = open_book(name, color_scheme="light")
        with subtests.test(page=name):
            asleep = page.locator("figure.attn-lab:not([data-ready=true])")
            assert asleep.count() == page.locator("mjx-merror").count() == 0
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        for theme, screen, rules in LOOKS:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size(SCREENS[screen])
            page.wait_for_timeout(500)  # the theme looks again what scrolls when resizing rests
            page.evaluate(SETTLED)
            with subtests.test(page=name, theme=theme, screen=screen):
                assert page.evaluate("document.documentElement.dataset.theme") == theme
                assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
                assert axe(page, rules) == []
        page.context.close()
