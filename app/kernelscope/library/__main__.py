"""``python -m kernelscope.library``: write the files that are generated from the specs again."""

from kernelscope.library import generated

if __name__ == "__main__":
    for file, text in generated.FILES.items():
        file.write_text(text(), encoding="utf-8")
