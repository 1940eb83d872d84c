"""What a browser makes of an HTML text: its tags, their attributes, the text between them."""

from html.parser import HTMLParser


class Tags(HTMLParser):
    """``found`` holds (tag, attributes) pairs in their order, ``text`` all text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data
