#!/usr/bin/env bash
# Make the pairs for the default model's third training run: texts and queries without tweets, but with
# the documentation of Python packages; crops of texts as additional queries; candidates by BM25. Takes
# two minutes on two cores. It adds files to the folder that pool.sh makes.
# Run: bash training/default/late-pool.sh ../shared/data pool
set -euo pipefail
data=$1 work=$2 here=$(dirname "$0")

# Licences of the packages: BSD (Django, NetworkX, pandas), MIT (SQLAlchemy), Apache-2.0 (NLTK).
pip install --quiet --no-deps --target "$work/packages" \
  django==5.2.8 networkx==3.5 nltk==3.9.2 pandas==2.3.3 sqlalchemy==2.0.44
PYTHONPATH="$work/packages" python "$here/docstrings.py" django networkx nltk pandas sqlalchemy \
  > "$work/docstrings.jsonl"

birchbark pairs to-collection "$data"/wikiqa/{train,dev,test}.tsv "$data"/selqa/{dev,test}.tsv \
  "$work"/{dl21.tsv,dl21.sentences.tsv,scifact.sentences.tsv,cmuqa.sentences.tsv,docstrings.jsonl} \
  --skip-bad --crops 12000 --seed 3 --to "$work/late"
birchbark index "$work/late/documents.jsonl" --to "$work/late.index"
birchbark retrieve "$work/late.index" --queries "$work/late/queries.tsv" --depth 200 --output "$work/late.run"
birchbark pairs judged "$work/late/documents.jsonl" --queries "$work/late/queries.tsv" --qrels "$work/late/qrels.txt" \
  --run "$work/late.run" --negatives 10 --random-negatives 1 --seed 3 --output "$work/late.tsv"
