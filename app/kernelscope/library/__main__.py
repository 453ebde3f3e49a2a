"""``python -m kernelscope.library``: write the files that are generated from the specs again."""

from kernelscope.library import manifest, reference, stub

if __name__ == "__main__":
    for each in (manifest, reference, stub):
        each.FILE.write_text(each.text(), encoding="utf-8")
