#!/bin/sh
# Fetches models into a volume: each a folder, whole or not there at all. In the folder
# $FILES (a ConfigMap), `models` has a line for each, its name and its source; a name
# has the revision in it (big-7f3c2a1). NAME.sha256 lists a model's files, as
# sha256sum writes them: what is not listed is not fetched, and what differs ends
# this with an error. $FETCH is the command that brings $SOURCE/$FILE to $FILE: curl,
# where it is not set.
set -eu
# shellcheck disable=SC2016 # the inner shell replaces them
default='curl --fail --location --silent --show-error --retry 5 --output "$FILE" "$SOURCE/$FILE"'
files=${FILES:-/files} models=${MODELS:-/models}
export SOURCE FILE

fetch_file() { # once more only where it is not whole
  echo "$1  $FILE" | sha256sum -c >/dev/null 2>&1 && return
  echo "$FILE"
  mkdir -p "$(dirname "$FILE")"
  sh -c "${FETCH:-$default}"
  echo "$1  $FILE" | sha256sum -c >/dev/null || { echo "fetch: $FILE of $SOURCE has another checksum" >&2 && rm "$FILE" && exit 1; }
}

is_whole() { # the model in this folder, by its sums; lines without words are none
  grep '[^[:space:]]' "$1" | sha256sum -c >/dev/null
}

fetch_model() {
  name=$1 SOURCE=$2 sums="$files/$1.sha256"
  if [ -d "$models/$name" ]; then
    cd "$models/$name"
    is_whole "$sums"
    echo "$name is there, and whole"
    return
  fi
  mkdir -p "$models/.$name.part" # stays where this fails: the next try goes on
  cd "$models/.$name.part"
  while read -r sum FILE || [ -n "$sum" ]; do # the last line may have no end
    [ -n "$sum" ] || continue
    case "/$FILE/" in
      */../* | //*) echo "fetch: \"$FILE\" is no path inside a model" >&2 && exit 1 ;;
    esac
    fetch_file "$sum"
  done <"$sums"
  is_whole "$sums" # all of its files, and now
  cd "$models" && mv ".$name.part" "$name"
  echo "$name is complete"
}

while read -r name source || [ -n "$name" ]; do
  [ -z "$name" ] || fetch_model "$name" "$source"
done <"$files/models"
