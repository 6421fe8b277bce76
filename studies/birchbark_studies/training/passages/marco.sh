#!/usr/bin/env bash
# Sample MS MARCO's documents as in Steensland's thesis (2021): 400 training queries among 100,000
# documents, whose windows become training pairs, and 200 other queries among 200,000 other documents
# for evaluation. Sampling takes every n-th line, so that it can be repeated. MARCO is a folder with
# msmarco-docs.tsv.gz, and msmarco-doctrain-queries.tsv.gz and -qrels.tsv.gz (also -docdev-) beside it.
# Run: bash studies/birchbark_studies/training/passages/marco.sh MARCO marco-pool; then the studies with --data marco-pool.
set -euo pipefail
marco=$1 work=$2
mkdir -p "$work"

queries() { # NAME SOURCE COUNT: queries with judgments, and the ids of their relevant documents
  local source=$marco/msmarco-$2
  local every=$(($(zcat "$source-queries.tsv.gz" | wc -l) / $3))
  zcat "$source-queries.tsv.gz" | awk -v every="$((every > 0 ? every : 1))" -v count="$3" \
    'NR % every == 0 && done < count { print; done++ }' > "$work/$1.queries.tsv"
  zcat "$source-qrels.tsv.gz" | awk 'NR == FNR { queries[$1]; next } $1 in queries' \
    "$work/$1.queries.tsv" - > "$work/$1.qrels"
  awk '{ print $3 }' "$work/$1.qrels" | sort -u > "$work/$1.relevant"
}
queries train doctrain 400
queries test docdev 200

documents() { # NAME OTHER EVERY REMAINDER COUNT: NAME's relevant documents and others, none of OTHER's
  zcat "$marco/msmarco-docs.tsv.gz" \
    | awk -F'\t' -v every="$3" -v remainder="$4" -v left="$(($5 - $(wc -l < "$work/$1.relevant")))" \
      'FILENAME == ARGV[1] { own[$1]; next }
       FILENAME == ARGV[2] { other[$1]; next }
       $1 in own { print; next }
       !($1 in other) && FNR % every == remainder && left-- > 0' \
      "$work/$1.relevant" "$work/$2.relevant" - > "$work/$1.docs.tsv"
}
documents train test 32 0 100000
documents test train 16 1 200000

# All windows of the first 40 documents by BM25, with the document's label.
birchbark index "$work/train.docs.tsv" --to "$work/train.index"
printf '[first_stage]\nk1 = 1.2\nb = 0.75\n' > "$work/bm25.toml"
birchbark retrieve "$work/train.index" --queries "$work/train.queries.tsv" --ranker "$work/bm25.toml" \
  --depth 40 --output "$work/train.run"
birchbark pairs "$work/train.docs.tsv" --queries "$work/train.queries.tsv" \
  --qrels "$work/train.qrels" --run "$work/train.run" --ranks 1-40 --all-ranked \
  --segments windows:150/50 --output "$work/train.windows.tsv"
