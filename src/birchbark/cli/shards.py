"""How does a command that goes through queries do a part of them, to be merged afterwards?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from birchbark.cli.console import notify
from birchbark.cli.options import option
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.cluster.shard import Shard
    from birchbark.index.index import Index
    from birchbark.records import Query

shard_option = option(
    "--shard",
    "shard_text",
    metavar="NUMBER/COUNT",
    help="Process only part NUMBER of COUNT of the queries, such as 2/8. `birchbark merge` then "
    "joins the files of all parts.",
)


def join_shards(output: Path, *, unlike_processors: bool) -> tuple[list[Path], int]:
    """Join the shards of `output`; see `merge_shards`. An earlier run's metadata is deleted."""
    from birchbark.cluster.merge_shards import merge_shards
    from birchbark.collection.run_metadata import metadata_path

    written, count = merge_shards(output, unlike_processors=unlike_processors)
    for file in written:
        metadata_path(file).unlink(missing_ok=True)
    return written, count


@dataclass(frozen=True, slots=True)
class Part:
    """The whole of a command's work, or a shard of it.

    Attributes:
        shard: None for the whole.
        targets: The files of the whole → the number of their header lines; all in one folder.
        scores: The score store of the whole, None for none.
    """

    shard: Shard | None
    targets: Mapping[Path, int]
    scores: Path | None = None

    @classmethod
    def parse(
        cls, text: str | None, targets: Mapping[Path | None, int], scores: Path | None = None
    ) -> Part:
        """Parse the option --shard. targets, scores: as above; None for files that are not written.

        Raises InputError for an invalid shard, or if its files would be in different folders.
        """
        from birchbark.cluster.shard import Shard
        from birchbark.score_cache.store_folder import check_store

        if text is not None and scores:
            check_store(scores)
        files = {path: header for path, header in targets.items() if path}
        folders = {path.absolute().parent for path in files}
        if text is not None and len(folders) > 1:
            raise InputError(
                "with --shard, all files must be in one folder",
                found=", ".join(map(str, sorted(folders))),
            )
        return cls(None if text is None else Shard.parse(text), files, scores)

    def file(self, target: Path) -> Path:
        """Return the file to write instead of `target`."""
        return self.shard.file(target) if self.shard else target

    def queries(self, queries: Sequence[Query]) -> Sequence[Query]:
        """Return the queries of this part."""
        return self.shard.of(queries) if self.shard else queries

    def is_finished(self, work: Mapping[str, str]) -> bool:
        """Whether this is a shard that was finished before, which is said. work: see `finish`."""
        from birchbark.cluster.shard_record import is_finished

        if not (self.shard and is_finished(self.shard, work, self.targets, self.scores)):
            return False
        notify(f"shard {self.shard} was finished before")
        return True

    def finish(self, work: Mapping[str, str]) -> None:
        """Record a finished shard. work: see `ShardRecord`."""
        from birchbark.cluster.shard_record import write_record

        if self.shard:
            write_record(self.shard, work, self.targets, self.scores)


def work_on_queries(
    index: Index, queries: Sequence[Query], models: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, str]:
    """Return the hashes of what decides the result for all queries; see `ShardRecord.work`.

    models: fingerprints. settings: option → its value; of a file, its contents count.
    """
    from birchbark.artifact import fingerprint, json_checksum, software_versions

    asked = [[q.query_id, q.text, dict(q.weights) if q.weights else None] for q in queries]
    files = {name: fingerprint(x) for name, x in settings.items() if isinstance(x, Path)}
    others = {name: str(x) for name, x in settings.items() if name not in files}
    return {
        "index": index.fingerprint,
        "queries": json_checksum({"queries": asked}),
        "models": json_checksum({"models": list(models)}),
        **files,
        "settings": json_checksum(others),
        "version": software_versions()["birchbark"],
    }
