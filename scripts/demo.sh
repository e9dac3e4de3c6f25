#!/bin/sh
# scripts/demo.sh <pleat>: a shipped model under four plans and a hybrid one under two, then one table of
# what each costs and what it does to the perplexity of a short text.
set -eu

pleat=$1
here=$(cd "$(dirname "$0")/.." && pwd)
model=$here/models/pleat-demo-llama-16L-q4_0.gguf
hybrid=$here/models/pleat-demo-qwen35-12L-q4_0.gguf
text=$here/models/demo-text.txt
prompt='Ada the baker lived near the market. After lunch Ada went to the'

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

rows=
show() {
    name=$1
    shift
    result=$("$pleat" run -m "$model" -p "$prompt" -n 48 --temp 0 --json -q "$@")
    plan=$(printf '%s' "$result" | sed -n 's/.*"plan":"\([^"]*\)".*/\1/p')
    printf '%s: %s\n' "$name" "$plan"
    "$pleat" run -m "$model" -p "$prompt" -n 48 --temp 0 -q "$@"
    printf '\n'
    speed=$(printf '%s' "$result" | field generation_tokens_per_second)
    cache=$(printf '%s' "$result" | field cache_bytes)
    score=$("$pleat" perplexity -m "$model" -f "$text" -q "$@" | sed 's/.*PPL = //')
    rows=$rows$(printf '| %-20s | %-28s | %10.1f | %9d | %s |' "$name" "$plan" "$speed" "$cache" "$score")'
'
}

show 'identity'
show 'repeat 6..8' --repeat-layers '6,9'
show 'no attention in 12' --drop-attention '12'
show 'explicit path' --layers '0..8,7..8[-attn],9..15'
model=$hybrid
show 'hybrid' --layers '0..11'
show 'repeat 4..5' --repeat-layers '4,6'

printf '| %-20s | %-28s | %10s | %9s | %s |\n' name plan 'tokens/s' 'cache' 'perplexity'
printf '| %s | %s | %s | %s | %s |\n' -------------------- ---------------------------- ---------: --------: ---
printf '%s' "$rows"
printf '\nThe plans of a model ran on the same 3 MB file; nothing was copied or edited. Try your own:\n'
printf '  %s run MODEL.gguf -p "..." --repeat-layers "26,34"\n' "$pleat"
