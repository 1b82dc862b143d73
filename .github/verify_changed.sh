#!/usr/bin/env bash
# Verifies the folders of records that differ from a commit: verify_changed.sh COMMIT. Code 1 where one does not hold.
set -uo pipefail
failed=0
changed=$(git diff --no-renames --name-only "$1" HEAD -- results/published) || exit 2
while read -r folder; do
  [ -n "$folder" ] || continue
  echo "::group::$folder"
  if [ -f "$folder/submission.json" ]; then
    leakboard verify "$folder" || failed=1
  else
    echo "::error::$folder has no submission.json: records of the project's own suites come from its maintainers." \
      "Submit yours under a name of its own (CONTRIBUTING.md, Numbers of your own)."
    failed=1
  fi
  echo "::endgroup::"
done < <(echo "$changed" | awk -F/ 'NF > 3 {print $1 "/" $2 "/" $3}' | sort -u)
exit $failed
