"""One visitor: a fresh browser profile that opens pages of a server and notes what goes wrong."""

from tests.browser.idle import WATCH, wait_idle

LOCAL = ("data:", "blob:", "about:")


class Visit:
    """A browser profile with one page.

    Attributes
    ----------
    page : playwright.sync_api.Page
    """

    def __init__(self, browser, server, *, width=1280, height=900, dark=False):
        self._server = server
        self._context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            locale="en-US",
            permissions=["clipboard-read", "clipboard-write"],
        )
        self._context.add_init_script(WATCH)
        self._errors = []
        self._strangers = set()
        self._context.on("request", lambda request: self._note_address(request.url))
        self.page = self._context.new_page()
        self.page.on("pageerror", lambda error: self._errors.append(str(error)))

    def open(self, address="/"):
        """Go to an address such as ``/Advantages?s=...``, wait for the page, return it."""
        self.page.goto(self._server.url + address)
        wait_idle(self.page)
        return self.page

    def faults(self):
        """What is wrong with the page, a text each."""
        faults = [f"Error in the page {self.page.url}:\n{error}" for error in self._errors]
        if self.page.get_by_test_id("stException").count():
            log = self._server.log()
            faults.append(f"{self.page.url} shows an exception. End of the server's log:\n{log}")
        faults += [f"The page asked another machine: {url}" for url in sorted(self._strangers)]
        return faults

    def close(self):
        """End the visit; profile and page are gone."""
        self._context.close()

    def _note_address(self, url):
        if not url.startswith((self._server.url, *LOCAL)):
            self._strangers.add(url)
