#!/usr/bin/env bash
# Make training pairs of Robust04: windows of the documents that are judged, and of ten others for each query from the
# first hundred of BM25. DATA has TREC disks 4 and 5 in the folder disk45, qrels.robust04.txt, and the topics in
# checks/robust04/topics.robust04.txt. The Congressional Record is left out, as in the track.
# Run: bash studies/birchbark_studies/training/passages/robust04.sh DATA; then passages-robust04 with --data DATA.
set -euo pipefail
cd "$1"
queries=checks/robust04/topics.robust04.txt

# A copy of the files that belong to the collection.
rm -rf robust04.documents
mkdir robust04.documents
find -L disk45 -type f -not -ipath '*/cr/*' -exec cp --parents {} robust04.documents \;

reading=(--format trec --encoding latin-1)
birchbark index robust04.documents "${reading[@]}" --to robust04.index --replace
birchbark retrieve robust04.index --queries "$queries" --depth 100 --output robust04.run
birchbark pairs robust04.documents "${reading[@]}" --queries "$queries" --qrels qrels.robust04.txt \
  --run robust04.run --negatives 10 --segments windows:150/50 --output robust04.windows.tsv
