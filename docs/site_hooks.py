"""How do help, HTTP requests, results, notebooks and llms.txt get into the site? By MkDocs hooks.

The pages, and that of training/README.md, show the originals, so that they cannot differ from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import http_reference
import notebook_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from birchbark.cli import group

ROOT = Path(__file__).parents[1]
COMMANDS = "<!-- commands -->"
TRAINING = "<!-- training/README.md -->"
HTTP = "<!-- http -->"
PAPERS = "papers.md"


class NotebookPage(File):
    """A notebook that is shown as a page, so that links to it lead there."""

    def is_documentation_page(self) -> bool:
        """Return True, although its name does not end like that of a Markdown file."""
        return True


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Show notebooks as pages, and add the pages of committed results with their figures."""
    show_notebooks(files, config)
    add_results(files, config)
    return files


def show_notebooks(files: Files, config: MkDocsConfig) -> None:
    """Replace each notebook by its page, and add the notebook itself in a folder `files`."""
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        folder, _, name = notebook.src_uri.rpartition("/")
        page = notebook_pages.markdown(notebook.content_string, f"files/{name}")
        files.remove(notebook)
        files.append(NotebookPage.generated(config, notebook.src_uri, content=page))
        original = notebook.content_bytes
        files.append(File.generated(config, f"{folder}/files/{name}", content=original))


def add_results(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of committed results, with their figures, as results/NAME.md."""
    for folder in result_folders():
        page = (folder / "README.md").read_text("utf-8")
        page = page.replace("](figures/", f"]({folder.name}/figures/")
        files.append(File.generated(config, f"results/{folder.name}.md", content=page))
        for figure in sorted((folder / "figures").glob("*.svg")):
            uri = f"results/{folder.name}/figures/{figure.name}"
            files.append(File.generated(config, uri, abs_src_path=str(figure)))


def result_folders() -> list[Path]:
    """Return the folders of committed results, by name."""
    return sorted((ROOT / "studies" / "results").iterdir())


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace the markers on a page, and link the recipes in a table to their results."""
    if page.file.src_uri == PAPERS:
        for folder in result_folders():
            name = f"`{folder.name}`"
            markdown = markdown.replace(name, f"[{name}](results/{folder.name}.md)")
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, "\n".join(sections()))
    if HTTP in markdown:
        markdown = markdown.replace(HTTP, http_reference.markdown(http_reference.openapi()))
    if TRAINING in markdown:
        markdown = markdown.replace(TRAINING, (ROOT / "training" / "README.md").read_text())
    return markdown


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the navigation, whose pages have their titles only when they have been read."""
    config.extra["nav"] = nav
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt, by which language models find the pages (llmstxt.org)."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}"]
    for item in config.extra["nav"].items:
        pages = [item] if isinstance(item, Page) else list(_pages(item))
        heading = "Overview" if isinstance(item, Page) else str(item.title)
        lines += [*([] if f"## {heading}" in lines else ["", f"## {heading}", ""])]
        lines += [f"- [{page.title}]({page.url})" for page in pages]
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n")


def _pages(section: Any) -> Iterator[Page]:
    """Yield the pages of a section, and of those in it."""
    for child in section.children:
        if isinstance(child, Page):
            yield child
        else:
            yield from _pages(child)


def sections() -> Iterator[str]:
    """Yield a heading and the help of each command, groups before their commands."""
    for context in contexts(group, "birchbark", None):
        level = "#" * (2 if context.parent is None or context.parent.parent is None else 3)
        yield f"{level} {context.command_path}\n\n```text\n{context.get_help()}\n```\n"


def contexts(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[click.Context]:
    """Yield the context of a command, then those of all commands below it."""
    settings = {**command.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            inner = command.get_command(context, child)
            if inner is not None:
                yield from contexts(inner, child, context)
