#!/usr/bin/env bash
# Make the training pairs for the studies of self-supervised training from SciFact's titles and
# abstracts, and a base whose vocabulary is extended with their words. Takes a minute on two cores.
# Run: bash training/titles/pool.sh ../shared/data titles-pool; then the studies with
# --data titles-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Link all data, so that one folder serves training and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

pairs() { # NAME SHARE STOP-WORDS SHORTER SHUFFLE
  local name=$1 share=$2 stop=$3 shorter=$4 shuffle=$5 title text
  read -r title text <<<"$shorter"
  birchbark pairs title-abstract "$data/scifact/corpus.jsonl" --negative-share "$share" --limit 6000 \
    --drop-stop-words "$stop" --shorten-title "$title" --shorten-text "$text" --shuffle-title "$shuffle" \
    --title-title 0 --swap 0 --output "$work/$name.tsv"
}
# Different shares of negative pairs, with the changes that were best in the report.
for share in 1 3 5 7 9; do pairs "false.$share" ".$share" .4 ".2 .3" 0; done
# All combinations of changes: w drops stop words, s shortens, m shuffles the words of titles.
pairs plain .65 0 "0 0" 0
pairs s .65 0 ".2 .3" 0
pairs w .65 .4 "0 0" 0
pairs m .65 0 "0 0" .2
pairs sw .65 .4 ".2 .3" 0
pairs sm .65 0 ".2 .3" .2
pairs wm .65 .4 "0 0" .2
pairs swm .65 .4 ".2 .3" .2

birchbark model extend all-MiniLM-L6-v2 "$data/scifact/corpus.jsonl" --words 1000 --to "$work/extended"

# Only if the data folder has CORD-19.
if [ -e "$data/cord19/metadata.csv" ]; then
  birchbark pairs title-abstract "$data/cord19/metadata.csv" --output "$work/covid.tsv"
fi
