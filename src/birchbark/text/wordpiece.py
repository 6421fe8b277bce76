"""How are words split into the WordPiece tokens of a BERT vocabulary?"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from birchbark.text.normal_form import normal_form
from birchbark.text.words import pieces

UNKNOWN = "[UNK]"
MAX_WORD_LENGTH = 100
STEP = 8_192  # characters that are split at once: while they are, no other thread runs


class WordPieces:
    """BERT's uncased tokeniser as an analyzer. It splits text at white space and punctuation.

    Punctuation marks are not terms. A word that cannot be composed of tokens in the vocabulary is
    unknown and has no terms.
    """

    def __init__(self, vocabulary: Sequence[str], change: Callable[[str], str] = str) -> None:
        """Load a vocabulary.

        vocabulary: WordPiece tokens in the order of their ids. change: a function applied to each
        word before it is split, such as a stemmer.
        """
        from tokenizers.models import WordPiece
        from tokenizers.normalizers import BertNormalizer
        from tokenizers.pre_tokenizers import BertPreTokenizer

        ids = {token: number for number, token in enumerate(vocabulary)}
        ids.setdefault(UNKNOWN, len(ids))
        self._model = WordPiece(ids, unk_token=UNKNOWN, max_input_chars_per_word=MAX_WORD_LENGTH)
        self._normalizer = BertNormalizer(lowercase=True)
        self._pre_tokenizer = BertPreTokenizer()
        self._change = change

    def tokens(self, text: str) -> list[str]:
        """Return the words of `text`, lowercased and without accents; of a long one in steps."""
        return [token for piece in pieces(text, STEP) for token in self._tokens(piece)]

    def _tokens(self, text: str) -> list[str]:
        normal = self._normalizer.normalize_str(normal_form(text))
        words = self._pre_tokenizer.pre_tokenize_str(normal)
        return [word for word, _ in words if any(map(str.isalnum, word))]

    def normalise(self, token: str) -> tuple[str, ...]:
        """Return the WordPiece tokens of a word; all but the first begin with ##. () if unknown."""
        terms = tuple(piece.value for piece in self._model.tokenize(self._change(token)))
        return () if UNKNOWN in terms else terms

    def unknown(self, token: str) -> bool:
        """Return whether the word cannot be composed of tokens in the vocabulary."""
        return not self.normalise(token)
