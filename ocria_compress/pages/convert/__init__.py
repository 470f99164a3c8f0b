"""Makes page sets out of folders of documents and of the layouts of public benchmarks: one file per format."""

from ocria_compress.pages.convert.run import FORMATS, Converted, Faulty, convert, detect

__all__ = ["FORMATS", "Converted", "Faulty", "convert", "detect"]
