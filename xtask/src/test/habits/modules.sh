# Puts Environment Modules, whose script is $MODULECMD, where EasyBuild searches for it.
MODULESHOME=$PWD/modules
export MODULESHOME
mkdir -p "$MODULESHOME/libexec"
cat > "$MODULESHOME/libexec/modulecmd.tcl" <<END
#!/bin/sh
exec tclsh "$MODULECMD" "\$@"
END
chmod +x "$MODULESHOME/libexec/modulecmd.tcl"
