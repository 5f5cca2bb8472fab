#!/bin/sh
# Fetches the vendored front-end files from npm (nothing else is ever loaded from outside) and builds the icon sprite.
#   static/vendor/fetch.sh          fetch, rebuild, write SHA256SUMS
#   static/vendor/fetch.sh --check  only compare the files with SHA256SUMS
# Needs npm, tar and awk. To raise a version: change it here, run this, look at the pages, commit the result.
set -eu

BOOTSTRAP=5.3.9
BOOTSTRAP_ICONS=1.13.2
ANSI_UP=6.0.6

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here"

if [ "${1:-}" = "--check" ]; then
    exec sha256sum --check --quiet SHA256SUMS
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for package in "bootstrap@$BOOTSTRAP" "bootstrap-icons@$BOOTSTRAP_ICONS" "ansi_up@$ANSI_UP"; do
    file=$(cd "$tmp" && npm pack --silent "$package" | tail -n 1)
    mkdir "$tmp/${package%@*}"
    tar -xzf "$tmp/$file" -C "$tmp/${package%@*}" --strip-components=1
done

# The source maps are left out, so the comments that name them go too: the manifest storage of collectstatic would look for them.
strip_map() {
    sed -e '/^\/\*# sourceMappingURL=.*\*\/$/d' -e '/^\/\/# sourceMappingURL=.*$/d' "$1"
}

rm -rf bootstrap ansi_up bootstrap-icons
mkdir bootstrap ansi_up bootstrap-icons
strip_map "$tmp/bootstrap/dist/css/bootstrap.min.css" > bootstrap/bootstrap.min.css
strip_map "$tmp/bootstrap/dist/js/bootstrap.bundle.min.js" > bootstrap/bootstrap.bundle.min.js
cp "$tmp/bootstrap/LICENSE" bootstrap/LICENSE

# ansi_up ships an ES module; pages use plain scripts, so its own UMD frame is not needed and a closure is enough.
{
    echo "/* ansi_up $ANSI_UP, MIT: https://github.com/drudru/ansi_up. Wrapped as a plain script: window.AnsiUp. */"
    echo "(function () {"
    strip_map "$tmp/ansi_up/ansi_up.js" | sed -e 's/^export class AnsiUp/class AnsiUp/'
    echo "window.AnsiUp = AnsiUp;"
    echo "})();"
} > ansi_up/ansi_up.js
cp "$tmp/ansi_up/LICENSE" ansi_up/LICENSE

cp "$tmp/bootstrap-icons/LICENSE" bootstrap-icons/LICENSE
sprite=../img/icons.svg
{
    echo "<svg xmlns=\"http://www.w3.org/2000/svg\"><!-- bootstrap-icons $BOOTSTRAP_ICONS, MIT: https://icons.getbootstrap.com -->"
    sed -e 's/#.*//' -e '/^[[:space:]]*$/d' icons.txt | while read -r name; do
        # One symbol per icon: the frame of the single file is replaced, its paths are kept as they are.
        awk -v name="$name" '
            /^<svg / { print "<symbol id=\"" name "\" viewBox=\"0 0 16 16\">"; next }
            /^<\/svg>/ { print "</symbol>"; next }
            { sub(/^  /, ""); sub(/<\/svg>$/, "</symbol>"); print }
        ' "$tmp/bootstrap-icons/icons/$name.svg"
    done
    echo "</svg>"
} > "$sprite"

sha256sum bootstrap/* ansi_up/* bootstrap-icons/* ../img/icons.svg > SHA256SUMS
ls -l bootstrap ansi_up ../img/icons.svg
