. /packages/common.sh
files > /tmp/before
mkdir "/opt/my programs"
tar -xzf /packages/weft-*.tar.gz -C "/opt/my programs"
weft=$(echo "/opt/my programs"/weft-*)
"$weft/bin/mpiexec" -n 4 /packages/heat-tarball
"$weft/bin/mpicc" -show | grep -q -- "$weft/include"
# A second folder: nothing refers to the first.
mv "$weft" /srv/weft
PATH=/srv/weft/bin:$PATH
mpiexec -n 4 /packages/heat-tarball
mpicc -show | grep -q -- "-I/srv/weft/include"
weft info > /tmp/info
test "$(weft env | head -n 1)" = "export PATH='/srv/weft/bin'\${PATH:+:\$PATH}"
test -s /srv/weft/share/bash-completion/completions/weft && test -s /srv/weft/share/modulefiles/weft-legacy
test -s /srv/weft/share/doc/weft/LICENSE-MIT && test -s /srv/weft/share/doc/weft/THIRD-PARTY.md
rm -r /srv/weft "/opt/my programs"
nothing_is_left
