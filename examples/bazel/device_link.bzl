"""A rule that links device code with pylink, in a persistent worker where Bazel allows one.

    load(":device_link.bzl", "device_link")

    device_link(
        name = "program",
        srcs = ["a.cubin", "b.cubin"],
        arch = "sm_90a",
    )

The objects may be outputs of rules_cuda's `cuda_objects` with relocatable device code.
"""

def _device_link_impl(ctx):
    output = ctx.actions.declare_file(ctx.label.name + ".cubin")
    arguments = ctx.actions.args()
    arguments.add(ctx.attr.arch, format = "-arch=%s")
    arguments.add("-o", output)
    arguments.add_all(ctx.attr.options)
    arguments.add_all(ctx.files.srcs)

    # Bazel starts a worker only for actions whose arguments are in a file.
    arguments.use_param_file("@%s", use_always = True)
    arguments.set_param_file_format("multiline")
    ctx.actions.run(
        executable = ctx.executable._pylink,
        arguments = ["worker", "--worker_protocol=json", arguments],
        inputs = ctx.files.srcs,
        outputs = [output],
        mnemonic = "CudaDeviceLink",
        use_default_shell_env = True,  # has the PATH of --action_env, where pylink is looked for
        progress_message = "Linking device code of %{label}",
        execution_requirements = {
            "requires-worker-protocol": "json",
            "supports-multiplex-sandboxing": "1",
            "supports-multiplex-workers": "1",
            "supports-worker-cancellation": "1",
            "supports-workers": "1",
        },
    )
    return [DefaultInfo(files = depset([output]))]

device_link = rule(
    implementation = _device_link_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        "arch": attr.string(mandatory = True),
        "options": attr.string_list(),
        "_pylink": attr.label(default = ":pylink", executable = True, cfg = "exec"),
    },
)
