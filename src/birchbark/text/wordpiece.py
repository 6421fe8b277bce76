"""How are words cut into the pieces of a BERT vocabulary?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNKNOWN = "[UNK]"
LONGEST_WORD = 100


class WordPieces:
    """BERT's uncased tokeniser as an analyzer: words are cut at white space and punctuation.

    Punctuation marks are no terms. A word that the vocabulary cannot spell is unknown and has no
    terms either.
    """

    def __init__(self, vocabulary: Sequence[str], change: Callable[[str], str] = str) -> None:
        """vocabulary: pieces in the order of their ids. change: done to each word first, a stem."""
        from tokenizers.models import WordPiece
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        ids = {piece: number for number, piece in enumerate(vocabulary)}
        ids.setdefault(UNKNOWN, len(ids))
        self._model = WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
        self._normalizer = BertNormalizer(lowercase=True)
        self._pre_tokenizer = BertPreTokenizer()
        self._change = change

    def tokens(self, text: str) -> list[str]:
        """The words of `text`, in lower case and without accents."""
        normal = self._normalizer.normalize_str(text)
        found = self._pre_tokenizer.pre_tokenize_str(normal)
        return [word for word, _ in found if any(map(str.isalnum, word))]

    def normalise(self, token: str) -> tuple[str, ...]:
        """The pieces of a word; those that continue it begin with ##. None if it is unknown."""
        pieces = tuple(piece.value for piece in self._model.tokenize(self._change(token)))
        return () if UNKNOWN in pieces else pieces

    def unknown(self, token: str) -> bool:
        """Whether the vocabulary cannot spell this word."""
        return not self.normalise(token)
