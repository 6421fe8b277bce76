"""Are the topics of many evaluation campaigns read, and is nothing of a topic lost or moved?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from birchbark.collection.queries import read_queries
from birchbark.collection.topics import Topic, read_topics
from birchbark.errors import InputError
from birchbark.records import Query

# Name → file, fields, the queries' ids and texts. Made up; the forms are those of the campaigns.
FORMS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "TREC 1 and 2": (
        "<top>\n<head> Tipster Topic Description\n<num> Number:  051\n<dom> Domain:  Trade\n"
        "<title> Topic:  Birch Bark\n<desc> Description:\nWho sells bark?\n"
        "<smry> Summary:\nSales of bark.\n<narr> Narrative:\nNames of sellers.\n"
        "<con> Concept(s):\n1. bark\n<fac> Factor(s):\n<nat> Nationality: Canada\n</fac>\n"
        "<def> Definition(s):\nbark - the skin of a tree\n</top>\n",
        ("title", "description", "narrative"),
        {"51": "Birch Bark Who sells bark? Names of sellers."},
    ),
    "TREC 3 to 8": (
        "<top>\n\n<num> Number: 301 \n<title> birch canoes\n\n<desc> Description: \nHow are they "
        "made?\n\n<narr> Narrative: \nNot those of steel.\n\n</top>\n",
        ("description",),
        {"301": "How are they made?"},
    ),
    "questions of TREC 8": (
        "<top>\n<num> Number: 200\n<desc> Description:\nWho built canoes?\n</top>\n",
        ("description",),
        {"200": "Who built canoes?"},
    ),
    "spoken documents": (
        "<top>\n<num> Number: SD9\n<title> canoes\n<audio> sd9.wav\n<desc> Description: Of bark?\n"
        "<rel> Relevance: any\n<narr> Narrative: None.\n</top>\n",
        ("title", "description", "narrative"),
        {"SD9": "canoes Of bark? None."},
    ),
    "blogs": (
        '<top>\n<num> Number: 851 </num>\n<title> "Canoe of the Year" </title>\n\n'
        "<desc> Description:\nOpinions. </desc>\n<narr> Narrative:\nAny. </narr>\n</top>\n",
        ("title",),
        {"851": '"Canoe of the Year"'},
    ),
    "web, with subtopics": (
        '<webtrack2009>\n<topic number="1" type="faceted">\n<query>canoe history</query>\n'
        "<description>Find histories.\n</description>\n"
        '<subtopic number="1" type="nav">Maps.</subtopic>\n'
        '<subtopic number="2" type="inf">Dates.</subtopic>\n</topic>\n</webtrack2009>\n',
        ("title", "description"),
        {"1": "canoe history Find histories."},
    ),
    "genomics": (
        "<TOPICS>\n<TOPIC>\n<ID>7</ID>\n<TITLE>Bark genes</TITLE>\n<NEED>Which are known?</NEED>\n"
        "<CONTEXT>Papers.</CONTEXT>\n</TOPIC>\n</TOPICS>\n",
        ("title", "need"),
        {"7": "Bark genes Which are known?"},
    ),
    "precision medicine": (
        '<topics task="pm">\n<topic number="3">\n<disease>rash</disease>\n<gene>B2</gene>\n'
        "<other>None</other>\n</topic>\n</topics>\n",
        ("disease", "gene"),
        {"3": "rash B2"},
    ),
    "clinical trials": (
        '<?xml version="1.0"?>\n<!-- trials --><topics task="2021">\n'
        '<topic number="1">\nA person of 40 with a rash after touching bark.\n</topic>\n'
        '<topic number="2">Another, <b>older</b> person.</topic>\n</topics>\n',
        ("title",),
        {
            "1": "A person of 40 with a rash after touching bark.",
            "2": "Another, older person.",
        },
    ),
    "health misinformation": (
        "<topics>\n<topic>\n<number>101</number>\n<query>bark tea fever</query>\n"
        "<description>Does bark tea lower fever?</description>\n<narrative>It may.</narrative>\n"
        "<disclaimer>Ask a doctor.</disclaimer>\n</topic>\n</topics>\n",
        ("title", "description"),
        {"101": "bark tea fever Does bark tea lower fever?"},
    ),
    "COVID-19": (
        '<topics task="t" batch="1">\n<topic number="1">\n<query>bark</query>\n'
        "<question>what is bark</question>\n<narrative>Any.</narrative>\n</topic>\n</topics>\n",
        ("query", "question"),
        {"1": "bark what is bark"},
    ),
    "CLEF, languages in the tags": (
        "<top>\n<num> C041 </num>\n<EN-title> Bark in Tea </EN-title>\n<EN-desc> Is it safe? "
        "</EN-desc>\n<EN-narr> Any country. </EN-narr>\n</top>\n",
        ("title", "EN-desc"),
        {"C041": "Bark in Tea Is it safe?"},
    ),
    "CLEF, since 2008": (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<topics>\n<topic lang="en">\n'
        "<identifier>10.2452/401-AH</identifier>\n<title>Bark tea</title>\n"
        "<description>Is it safe?</description>\n<narrative>Any.</narrative>\n</topic>\n</topics>",
        ("title", "description"),
        {"10.2452/401-AH": "Bark tea Is it safe?"},
    ),
    "CLEF eHealth": (
        "<queries>\n<query>\n<id>q7</id>\n<title>bark rash</title>\n<desc>What is it?</desc>\n"
        "</query>\n</queries>\n",
        ("title", "description"),
        {"q7": "bark rash What is it?"},
    ),
    "LongEval": (
        "<top>\n<num>q062</num>\n<title>canoe shelter</title>\n</top>\n",
        ("title",),
        {"q062": "canoe shelter"},
    ),
    "NTCIR 1": (
        "<TOPIC q=0101>\n<TITLE>\nbark canoes\n</TITLE>\n<DESCRIPTION>How made?</DESCRIPTION>\n"
        "<NARRATIVE>Any.</NARRATIVE>\n<CONCEPT>a. bark</CONCEPT>\n</TOPIC>\n",
        ("title", "description"),
        {"0101": "bark canoes How made?"},
    ),
    "NTCIR 4": (
        "<TOPIC>\n<NUM>009</NUM>\n<SLANG>CH</SLANG>\n<TLANG>EN</TLANG>\n<TITLE>bark</TITLE>\n"
        "<DESC>How made?</DESC>\n<NARR>\n<BACK>Long used.</BACK>\n<REL>Canoes only.</REL>\n"
        "</NARR>\n<CONC>bark, canoe</CONC>\n</TOPIC>\n",
        ("narrative", "back", "rel"),
        {"009": "Long used. Canoes only. Long used. Canoes only."},
    ),
    "FIRE": (
        '<topics>\n<top lang="en">\n<num>26</num>\n<title>Bark trade</title>\n'
        "<desc>Who trades?</desc>\n<narr>Any.</narr>\n</top>\n</topics>\n",
        ("title", "description"),
        {"26": "Bark trade Who trades?"},
    ),
    "INEX": (
        '<inex_topic topic_id="544" ct_no="6">\n<title>canoes</title>\n'
        "<castitle>//sec[about(., canoes)]</castitle>\n<description>How made?</description>\n"
        "</inex_topic>\n",
        ("title",),
        {"544": "canoes"},
    ),
    "Indri": (
        "<parameters>\n<index>somewhere</index>\n<count>10</count>\n<query>\n<type>indri</type>\n"
        "<number>301</number>\n<text>bark canoes</text>\n</query>\n</parameters>\n",
        ("title",),
        {"301": "bark canoes"},
    ),
    "other spellings": (
        '<topics>\n<topic id="2"><title>two</title></topic>\n'
        "<Topic NUMBER='3'><Title>three</Title></Topic>\n"
        "<topic number=4><title>four</title></topic>\n"
        "<topic><number>5</number><title>five</title></topic>\n"
        '<topic number="6">six</topic>\n'
        '<!-- <topic number="7"><title>seven</title></topic> -->\n'
        '<topic number="8"><title><![CDATA[a < b & c]]></title></topic>\n'
        '<topic number="9"><title>a &lt; b &amp; c<br/>d</title></topic>\n'
        "</topics>\n",
        ("title",),
        {
            **{"2": "two", "3": "three", "4": "four", "5": "five", "6": "six"},
            **{"8": "a < b & c", "9": "a < b & c d"},
        },
    ),
}

FAULTS = {
    "between topics": ("<topics><topic id=1>a</topic> more <topic id=2>b</topic></topics>", "more"),
    "after": ("<top><num>1<title>a</top>\nmore", "text outside any topic: found 'more'"),
    "in a comment that does not end": ("<topic id=1>a</topic><!-- b", "<!-- is not closed"),
    "beside parts": (
        "<topic id=1>more <title>a</title></topic>",
        "text of a topic outside its parts: found 'more'",
    ),
    "behind a part": (
        "<top><num>1</num><title>a</title> more </top>",
        "text of a topic outside its parts: found 'more'",
    ),
    "in an unknown tag": (
        "<top><num>1 <title>a <unknown> more </top>",
        "<unknown> is not closed: expected </unknown>",
    ),
    "without number": ("<topic><title>a</title></topic>", "topic ?: topic has no number"),
    "with two numbers": ("<top><num>1<num>2<title>a</top>", "has several parts called num"),
    "with two titles": (
        "<topic id=1><title>a</title><title>b</title></topic>",
        "topic 1: topic has several parts called title: expected one",
    ),
    "in two languages": (
        "<top><num>1</num><FR-title>a</FR-title><EN-title>b</EN-title></top>",
        "topic 1: topic has no title: found fr-title, en-title (name other parts as topic fields)",
    ),
    "in attributes": (
        '<topic id=1><title lang="fr">a</title><title lang="en">b</title></topic>',
        "topic has no title: found fr-title, en-title",
    ),
    "in Indri's language": (
        "<query><number>1</number><text>#combine(bark canoe)</text></query>",
        "topic is a query in Indri's query language: expected plain text, found #combine(",
    ),
    "of another kind": (
        '<videoTopic num="1"><textDescription text="Find canoes"/></videoTopic>',
        "no queries: expected lines of id TAB text, JSON objects, or the elements top, topic",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_topics(form: str, tmp_path: Path) -> None:
    """Each topic has its number and the parts that were asked for, and none of the others."""
    text, fields, expected = FORMS[form]
    (tmp_path / "topics").write_text(text, "utf-8")
    found = read_queries(tmp_path / "topics", fields)
    assert found == [Query(number, query) for number, query in expected.items()]


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_understood_is_refused(fault: str, tmp_path: Path) -> None:
    """The message shows what was found, and names the file."""
    text, message = FAULTS[fault]
    (tmp_path / "topics").write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_queries(tmp_path / "topics")
    assert message in str(caught.value)
    assert str(tmp_path / "topics") in str(caught.value)


def test_all_parts_of_a_topic() -> None:
    """Each labelled part of TREC's first topics stands alone."""
    (topic,) = read_topics(FORMS["TREC 1 and 2"][0])
    assert topic == Topic(
        "51",
        {
            **{"head": "Tipster Topic Description", "dom": "Trade", "title": "Birch Bark"},
            **{"description": "Who sells bark?", "smry": "Sales of bark."},
            **{"narrative": "Names of sellers.", "con": "1. bark"},
            **{"fac": "Nationality: Canada", "def": "bark - the skin of a tree"},
        },
    )


@pytest.mark.parametrize("name", ["desc", "DESC", "description"])
def test_parts_have_two_names(name: str) -> None:
    """A tag and the full name mean the same part."""
    (topic,) = read_topics("<top><num>1<title>a<desc>b</top>")
    assert topic.text(["title", name]) == "a b"


def test_a_language_can_be_chosen() -> None:
    """The language in front of the part's name chooses it."""
    texts: Any = '<topic id=1><title lang="fr">a</title><title xml:lang="EN">b</title></topic>'
    (topic,) = read_topics(texts)
    assert topic.text(["en-title"]) == "b"
    assert topic.text(["fr-title"]) == "a"
