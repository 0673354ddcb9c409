# OUTRIDER_SANITIZE applies to the whole tree, so that no object file is left
# uninstrumented by accident.
if(OUTRIDER_SANITIZE)
  string(REPLACE "+" "," outrider_sanitizers "${OUTRIDER_SANITIZE}")
  add_compile_options(-fsanitize=${outrider_sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${outrider_sanitizers})
  if(OUTRIDER_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
endif()
