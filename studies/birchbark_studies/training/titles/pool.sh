#!/usr/bin/env bash
# Make the training pairs for the studies of self-supervised training from a collection's titles and
# abstracts: SciFact's, which takes a minute on two cores, and CORD-19's if DATA has a folder cord19; with new
# words, the latter's in bert-base-uncased (`birchbark model fetch bert-base-uncased`).
# Run: bash studies/birchbark_studies/training/titles/pool.sh DATA titles-pool; then the studies with --data titles-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Link all data, so that one folder serves training and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

pairs() { # OPTIONS COLLECTION NAME SHARE STOP-WORDS SHORTER SHUFFLE
  local options=$1 collection=$2 name=$3 share=$4 stop=$5 shorter=$6 shuffle=$7 title text
  read -r title text <<<"$shorter"
  # shellcheck disable=SC2086
  birchbark study title-pairs "$collection" --negative-share "$share" --drop-stop-words "$stop" \
    --shorten-title "$title" --shorten-text "$text" --shuffle-title "$shuffle" $options \
    --output "$work/$name.tsv"
}
all_pairs() { # OPTIONS COLLECTION PREFIX
  # Different shares of negative pairs, with the changes that were best in the report.
  for share in 1 3 5 7 9; do pairs "$1" "$2" "$3false.$share" ".$share" .4 ".2 .3" 0; done
  # All combinations of changes: w drops stop words, s shortens, m shuffles the words of titles.
  pairs "$1" "$2" "$3plain" .65 0 "0 0" 0
  pairs "$1" "$2" "$3s" .65 0 ".2 .3" 0
  pairs "$1" "$2" "$3w" .65 .4 "0 0" 0
  pairs "$1" "$2" "$3m" .65 0 "0 0" .2
  pairs "$1" "$2" "$3sw" .65 .4 ".2 .3" 0
  pairs "$1" "$2" "$3sm" .65 0 ".2 .3" .2
  pairs "$1" "$2" "$3wm" .65 .4 "0 0" .2
  pairs "$1" "$2" "$3swm" .65 .4 ".2 .3" .2
}
all_pairs "--limit 6000 --title-title 0 --swap 0" "$data/scifact/corpus.jsonl" ""
birchbark model extend all-MiniLM-L6-v2 "$data/scifact/corpus.jsonl" --words 1000 --to "$work/extended"

if [ -e "$data/cord19/metadata.csv" ]; then
  # Every fourth paper: with nine negatives per title, all papers would be too many pairs for memory.
  python - "$data/cord19" > "$work/cord19.jsonl" <<'CODE'
import json, sys
from birchbark.collection.documents import read_collection

for number, paper in enumerate(read_collection(sys.argv[1]), 1):
    if number % 4 == 0:
        print(json.dumps({"id": paper.doc_id, "title": paper.title, "text": paper.text}))
CODE
  all_pairs "" "$work/cord19.jsonl" covid.
  birchbark study title-pairs "$data/cord19" --output "$work/covid.tsv"
  birchbark model extend bert-base-uncased "$data/cord19" --words 1000 --to "$work/covid-extended"
fi
