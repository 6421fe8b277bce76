#!/usr/bin/env bash
# What the studies of self-supervised training learn from: SciFact's titles and abstracts, in pairs
# of all kinds, and the base with words of theirs added. A minute on two cores.
# Run: bash training/titles/pool.sh ../shared/data titles-pool; then the studies with
# --data titles-pool.
set -euo pipefail
data=$1 work=$2
mkdir -p "$work"
# Links to all data, so that one folder serves trainings and studies.
for path in "$data"/*/; do ln -sfn "$(realpath "$path")" "$work/$(basename "$path")"; done

pairs() { # NAME SHARE STOP-WORDS SHORTER SHUFFLE
  local name=$1 share=$2 stop=$3 shorter=$4 shuffle=$5 title text
  read -r title text <<<"$shorter"
  birchbark pairs title-abstract "$data/scifact/corpus.jsonl" --false "$share" --limit 6000 \
    --stop-words "$stop" --short-title "$title" --short-text "$text" --shuffle "$shuffle" \
    --title-title 0 --swap 0 --output "$work/$name.tsv"
}
# The share of false pairs, with what the paper found best.
for share in 1 3 5 7 9; do pairs "false.$share" ".$share" .4 ".2 .3" 0; done
# Each change or none: w drops stop words, s shortens, m mixes the words of titles.
pairs plain .65 0 "0 0" 0
pairs s .65 0 ".2 .3" 0
pairs w .65 .4 "0 0" 0
pairs m .65 0 "0 0" .2
pairs sw .65 .4 ".2 .3" 0
pairs sm .65 0 ".2 .3" .2
pairs wm .65 .4 "0 0" .2
pairs swm .65 .4 ".2 .3" .2

birchbark model extend all-MiniLM-L6-v2 "$data/scifact/corpus.jsonl" --words 1000 --to "$work/extended"

# For whoever has CORD-19.
if [ -e "$data/cord19/metadata.csv" ]; then
  birchbark pairs title-abstract "$data/cord19/metadata.csv" --output "$work/covid.tsv"
fi
